"""Two real engines behind the gateway: one giant prompt among 99 short ones, and a conversation that stays.

The simulated ``giant-and-99`` scaled to the small model. Both figures are printed; the times themselves say more of
the machine than of the gateway, so only their ratio is asserted, and that only in a burst. In a calm stream the two
engines have the processors to themselves until the giant comes and takes one of them, which no gateway can give
back; there it is asserted that the short ones go around it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live import running
from tests.live.running import CHAT, MODEL, Exchange, Service, call, long_text, said, until

pytestmark = pytest.mark.live

SHORTS = 99
GIANT_WORDS = 300
"""Some 900 tokens of a context of 2 048, thirty times as many as a short prompt has."""
MOST_SLOWER = 1.25
CALM = 2.0
"""The calm stream takes so many times as long as the engines need for it: half of their capacity."""
CONFIG = """
upstreams:
  {model}:
    replicas:
      - {{url: "{first}", api_key_env: FIRST_KEY}}
      - {{url: "{second}", api_key_env: SECOND_KEY}}
shaping: {{long_threshold_tokens: 512, giants: {{least_tokens: 1024}}}}
tail: {{timeouts: {{first_byte: {{floor_s: 170, default_s: 170, ceiling_s: 170}}}}}}
classes: {{interactive: {{max_wait_s: 3600}}, long: {{max_wait_s: 3600}}}}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service before two engines."""
    folder: Path = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        first, second = (stack.enter_context(running.engine()) for _ in range(2))
        config = folder / "tidegate.yaml"
        config.write_text(CONFIG.format(model=MODEL, first=first.url, second=second.url))
        env = {"FIRST_KEY": first.options.api_key, "SECOND_KEY": second.options.api_key}
        yield stack.enter_context(running.service(folder / "serve.log", "--config", str(config), env=env))


def is_idle(service: Service) -> bool:
    view = service.view()
    return not view["open_requests"] and not any(each["in_flight"] for each in view["replicas"].values())


@dataclass
class Seen:
    """One answer's beginning."""

    began_s: float
    """Since the first request of its run."""
    first_s: float
    """From request to first token."""
    request_id: str


@dataclass
class Played:
    shorts: list[Seen]
    giants: list[Seen]
    """One or none."""

    @property
    def p95_s(self) -> float:
        return sorted(each.first_s for each in self.shorts)[int(0.95 * SHORTS)]


def play(service: Service, salt: str, spread_s: float, giant_at_s: float | None) -> Played:
    began = time.monotonic()

    def ask(at_s: float, text: str, request_id: str) -> Seen:
        time.sleep(max(0.0, began + at_s - time.monotonic()))
        body = said(text, max_tokens=4, stream=True, ignore_eos=True)
        exchange = Exchange(service.url, body, {"x-request-id": request_id})
        with exchange.socket:
            first_s = exchange.read_events(1)
            assert b" 200 " in exchange.seen[:32], exchange.seen
            exchange.read_all()
        return Seen(at_s, first_s, request_id)

    with ThreadPoolExecutor(SHORTS + 1) as pool:
        texts = [f"{salt}, number {index}: say hello." for index in range(SHORTS)]
        shorts = [
            pool.submit(ask, spread_s * index / SHORTS, text, f"{salt}-{index}") for index, text in enumerate(texts)
        ]
        giant = long_text(GIANT_WORDS, salt)
        giants = [] if giant_at_s is None else [pool.submit(ask, giant_at_s, giant, f"{salt}-giant")]
        played = Played([each.result() for each in shorts], [each.result() for each in giants])
    until(lambda: is_idle(service), 30)
    return played


def replica_of(service: Service, seen: Seen) -> str:
    where = f"/admin/requests/{seen.request_id}"
    until(lambda: call(service.admin, where).status == 200, 10)
    (found,) = call(service.admin, where).json["requests"]
    return str(found["replica"])


def compare(pair: Service, spread_s: float, giant_at_s: float, rounds: int) -> tuple[float, Played]:
    """The same short prompts without and beside a giant, in turns: both P95 in print, of the quickest runs, since what
    else the machine does can only slow one down. How much slower they are beside it, and the last run beside it."""
    pairs = [
        (
            play(pair, f"without-{spread_s:.0f}-{number}", spread_s, None),
            play(pair, f"beside-{spread_s:.0f}-{number}", spread_s, giant_at_s),
        )
        for number in range(rounds)
    ]
    without_s, beside_s = (min(each.p95_s for each in runs) for runs in zip(*pairs, strict=True))
    beside = pairs[-1][1]
    print(  # noqa: T201 - the figures are what somebody runs this for
        f"\n{SHORTS} short prompts within {spread_s:.0f} s: P95 of the first token {without_s:.2f} s, beside a giant "
        f"{beside_s:.2f} s (x {beside_s / without_s:.2f}); the giant's own {beside.giants[0].first_s:.2f} s"
    )
    return beside_s / without_s, beside


@pytest.fixture(scope="module")
def drain_s(pair: Service) -> float:
    """How long this machine takes for the short ones, all at once: what the calm stream is a multiple of."""
    began = time.monotonic()
    play(pair, "warm", 1.0, None)
    return time.monotonic() - began


@pytest.mark.usefixtures("drain_s")
def test_a_giant_in_a_burst_costs_the_short_ones_at_most_a_quarter(pair: Service) -> None:
    slower, _ = compare(pair, 1.0, 0.5, rounds=3)
    assert slower <= MOST_SLOWER


def test_in_a_calm_stream_the_short_ones_go_around_a_giant(pair: Service, drain_s: float) -> None:
    spread_s = CALM * drain_s
    _, beside = compare(pair, spread_s, 0.3 * spread_s, rounds=1)
    (giant,) = beside.giants
    meanwhile = [each for each in beside.shorts if 0 < each.began_s - giant.began_s < giant.first_s]
    assert len(meanwhile) >= 5
    with_it = [each for each in meanwhile if replica_of(pair, each) == replica_of(pair, giant)]
    assert len(with_it) <= 0.1 * len(meanwhile)


def test_a_conversation_stays_with_the_engine_that_has_read_it(pair: Service) -> None:
    text = long_text(120, "conversation")
    answers = [call(pair.url, CHAT, said(text + " and then?" * turn, max_tokens=2)) for turn in range(4)]
    assert [answer.status for answer in answers] == [200] * 4
    assert len({answer.headers["x-tidegate-replica"] for answer in answers}) == 1
