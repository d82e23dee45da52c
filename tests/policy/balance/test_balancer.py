"""Which replicas are looked at, and what moves the choice among them."""

from __future__ import annotations

import pytest

from tidegate.policy.balance.balancer import MOST_SCANNED, BalanceConfig, Balancer
from tidegate.policy.breaker import BreakerConfig
from tidegate.policy.decisions import Reason
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.replica import LEAST_WARMTH, Replica
from tidegate.policy.request import Request

PROMPT = ((1, 1.0),)
DRAWS = [number * 0x9E3779B97F4A7C15 % 2**64 for number in range(500)]


def replica(name: str, domain: str = "", running: int = 0, **capacity: int) -> Replica:
    held = {"kv_tokens": 10**6, "sequences": 100} | capacity
    config = ReplicaConfig(name=name, upstream="a", capacity=Capacity(**held), domain=domain)
    made = Replica(config, LimitConfig(), PrefillConfig(), BreakerConfig(), slow_start_s=10.0)
    made.in_flight = running
    return made


def balancer(*replicas: Replica, config: BalanceConfig | None = None) -> Balancer:
    made = Balancer(BalanceConfig() if config is None else config)
    made.follow([*replicas])
    return made


def request(draw: int = 0, prompt_tokens: int = 1000, prefixes: tuple[tuple[int, float], ...] = PROMPT) -> Request:
    return Request(1, "a", 0.0, draw, prompt_tokens=prompt_tokens, prefixes=prefixes)


def chosen(of: Balancer, asked: Request, now: float = 0.0, avoid: str | None = None) -> str:
    found = of.choose(asked, 10, now, avoid)
    return found.name if isinstance(found, Replica) else found.value


def test_who_has_read_a_prompt_gets_what_begins_like_it() -> None:
    a, b = replica("a"), replica("b", running=1)
    of = balancer(a, b)
    assert chosen(of, request()) == "a"
    assert of.placed(request(), b) == 0
    assert chosen(of, request()) == "b"
    assert chosen(of, request(prefixes=((2, 1.0),))) == "a"
    assert chosen(of, request(prefixes=())) == "a"


def test_not_where_affinity_is_off_or_there_is_one_replica() -> None:
    a, b = replica("a"), replica("b", running=1)
    of = balancer(a, b, config=BalanceConfig(prefix_affinity=False))
    of.placed(request(), b)
    assert (chosen(of, request()), len(of.prefixes)) == ("a", 0)
    alone = balancer(a)
    alone.placed(request(), a)
    assert (chosen(alone, request()), len(alone.prefixes)) == ("a", 0)
    a.draining = True
    assert chosen(alone, request()) == Reason.NO_REPLICA.value


def test_what_is_hot_spreads_when_its_owner_has_more_than_its_part() -> None:
    a, b = replica("a", running=4), replica("b", running=6)
    of = balancer(a, b)
    of.placed(request(), b)
    assert chosen(of, request()) == "b"
    b.in_flight = 20
    assert chosen(of, request()) == "a"


def test_a_full_owner_is_waited_for_while_it_is_the_cheapest() -> None:
    a, b = replica("a"), replica("b")
    of = balancer(a, b)
    of.placed(request(), b)
    b.pending_tokens = 2048
    assert chosen(of, request(prompt_tokens=2000)) == "a"
    of.placed(request(prompt_tokens=8000), b)
    assert chosen(of, request(prompt_tokens=8000)) == Reason.PREFILL.value
    a.draining = True
    assert chosen(of, request(prompt_tokens=8000)) == Reason.PREFILL.value
    b.pending_tokens = 0
    assert chosen(of, request(prompt_tokens=8000)) == "b"


def test_a_full_owner_that_hangs_is_not_waited_for() -> None:
    a, b = replica("a"), replica("b")
    of = balancer(a, b)
    of.placed(request(prompt_tokens=8000), b)
    b.pending_tokens, b.token_s, b.read_at = 2048, 0.001, 100.0
    a.token_s = 0.001
    assert chosen(of, request(prompt_tokens=8000), now=105.0) == Reason.PREFILL.value
    assert chosen(of, request(prompt_tokens=8000), now=105.2) == "a"


def test_a_retry_waits_for_nobody() -> None:
    a, b, c = replica("a"), replica("b"), replica("c")
    of = balancer(a, b, c)
    of.placed(request(prompt_tokens=8000), b)
    b.pending_tokens = 2048
    assert chosen(of, request(prompt_tokens=8000)) == Reason.PREFILL.value
    assert chosen(of, request(prompt_tokens=8000), avoid="c") == "a"


def test_who_has_left_is_forgotten_and_comes_back_cold() -> None:
    a, b = replica("a"), replica("b", running=1)
    of = balancer(a, b)
    of.placed(request(), b)
    of.placed(request(prefixes=((2, 1.0),)), a)
    of.placed(request(prefixes=((2, 1.0),)), b)
    of.follow([a])
    assert len(of.prefixes) == 1
    again = replica("b", running=1)
    of.follow([a, again])
    assert chosen(of, request()) == "a"


def test_of_many_the_two_drawn_ones_stand_in_two_domains() -> None:
    many = [replica(f"{zone}{number}", domain=zone) for number in range(12) for zone in ("x", "y")]
    assert len(many) > MOST_SCANNED
    of = balancer(*many)
    for draw in DRAWS:
        for each in many:
            each.in_flight = 50 if each.config.domain == "x" else 0
        assert chosen(of, request(draw=draw, prefixes=()))[0] == "y"


def test_of_many_every_one_is_drawn() -> None:
    many = [replica(f"{zone}{number}", domain=zone) for number in range(12) for zone in ("x", "y")]
    of = balancer(*many)
    assert {chosen(of, request(draw=draw, prefixes=())) for draw in DRAWS} == {each.name for each in many}


def test_of_many_those_that_hold_the_most_are_looked_at_too() -> None:
    many = [replica(str(number)) for number in range(MOST_SCANNED + 4)]
    of = balancer(*many)
    for number, share in ((3, 0.5), (4, 1.0), (5, 0.75)):
        of.placed(request(prefixes=((number, 1.0), (1, share))), many[number])
    for draw in DRAWS:
        assert chosen(of, request(draw=draw)) == "4"


def test_when_those_looked_at_are_closed_all_are() -> None:
    many = [replica(str(number)) for number in range(MOST_SCANNED + 1)]
    for each in many[:-1]:
        each.draining = True
    assert chosen(balancer(*many), request(draw=0)) == str(MOST_SCANNED)


def test_a_retry_goes_to_another_domain_if_one_is_open() -> None:
    a, neighbour, other = replica("a", "x"), replica("b", "x"), replica("c", "y", running=9)
    of = balancer(a, neighbour, other)
    assert chosen(of, request(), avoid="a") == "c"
    other.draining = True
    assert chosen(of, request(), avoid="a") == "b"
    neighbour.draining = True
    assert chosen(of, request(), avoid="a") == Reason.NO_REPLICA.value
    assert chosen(balancer(a), request(), avoid="a") == Reason.NO_REPLICA.value


def test_a_retry_among_many_looks_at_two_of_the_other_domain() -> None:
    many = [replica(f"{zone}{number}", domain=zone) for number in range(MOST_SCANNED + 1) for zone in ("x", "y")]
    of = balancer(*many)
    found = {chosen(of, request(draw=draw), avoid="x0") for draw in DRAWS}
    assert len(found) > MOST_SCANNED / 2
    assert {name[0] for name in found} == {"y"}


def test_a_replica_that_starts_slowly_gets_its_part_bit_by_bit() -> None:
    a, b = replica("a", running=3), replica("b")
    of = balancer(a, b)
    b.start_slowly(100.0)
    assert b.warmth(100.0) == LEAST_WARMTH
    assert b.warmth(105.0) == pytest.approx(0.5)
    assert chosen(of, request(), now=100.0) == "a"
    assert chosen(of, request(), now=102.0) == "a"
    assert chosen(of, request(), now=103.0) == "b"
    assert chosen(of, request(), now=111.0) == "b"


@pytest.mark.parametrize("wrong", [{"bounded_load": 0.9}, {"slow_start_s": -1.0}])
def test_what_balance_may_not_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="balance needs"):
        BalanceConfig(**wrong)  # type: ignore[arg-type]  # each a number


@pytest.mark.parametrize("panic_share", [-0.1, 1.1])
def test_a_panic_begins_at_a_share(panic_share: float) -> None:
    with pytest.raises(ValueError, match="panic_share lies in"):
        BalanceConfig(panic_share=panic_share)
