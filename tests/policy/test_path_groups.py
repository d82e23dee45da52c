"""Two models on one pool, through Path: who waits for whom, and what lets them go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Decision, Reason, Refuse, Wait
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.slots import SlotsConfig

IMAGES = replica_config("i1", "images", "images", bytes_per_token=1, slot_tokens=1, sequences=99)
TEXT = replica_config("t1", "text", "text", bytes_per_token=1, slot_tokens=1, sequences=99)


def config(images: tuple[int, int, int] = (600, 1000, 0), text: tuple[int, int, int] = (400, 1000, 0)) -> PathConfig:
    """One pool of 1 000 bytes; groups as (floor, cap, reserve); a token is a byte, and a slot."""
    groups = tuple(
        GroupConfig(name=name, floor_bytes=floor, cap_bytes=cap, reserve_bytes=reserve)
        for name, (floor, cap, reserve) in (("images", images), ("text", text))
    )
    pool = PoolConfig(name="card", budget_bytes=1000, groups=groups)
    return PathConfig(replicas=(IMAGES, TEXT), groups=GroupsConfig(pools=(pool,)), prefill=PrefillConfig(enabled=False))


def ask(events: Events, upstream: str, size: int, patience_s: float = 1000.0) -> Decision:
    return events.offer(
        upstream=upstream,
        prompt_tokens=size - 10,
        max_tokens=10,
        class_hint="batch",
        first_byte_by=events.now + patience_s,
    )


def reason_of(decision: Decision) -> Reason | None:
    return decision.reason if isinstance(decision, (Wait, Refuse)) else None


def groups_of(events: Events) -> dict[str, dict[str, object]]:
    found = events.path.view(events.now)["groups"]
    assert isinstance(found, dict)
    return found


def test_an_idle_models_memory_is_lent_and_its_reserve_is_not() -> None:
    events = Events(Path(config(text=(400, 1000, 100)), 0.0))
    assert isinstance(ask(events, "images", 900), Admit)
    assert reason_of(ask(events, "images", 50)) is Reason.GROUP_SHARE
    assert isinstance(ask(events, "text", 100), Admit)
    assert groups_of(events)["images"]["borrowed_bytes"] == 300


def test_what_one_model_gives_back_lets_the_other_go_at_once() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "images", 1000)
    assert reason_of(ask(events, "text", 300)) is Reason.GROUP_SHARE
    assert groups_of(events)["text"]["waits"] is True
    events.settle(0, Outcome.OK)
    assert [request.upstream for request, _ in events.live] == ["text"]
    assert groups_of(events)["text"]["waits"] is False


def test_no_loan_is_made_while_a_floor_is_owed() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "images", 700)
    ask(events, "images", 250)
    ask(events, "text", 300)
    assert reason_of(ask(events, "images", 50)) is Reason.GROUP_SHARE
    events.settle(1, Outcome.OK)
    assert [request.upstream for request, _ in events.live] == ["images", "text"]


def test_a_claim_ends_with_the_ticket_that_made_it_and_the_borrower_goes_in_the_same_breath() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "images", 700)
    ask(events, "images", 200)
    ask(events, "text", 300)
    assert isinstance(ask(events, "images", 50), Wait)
    assert len(events.live) == 2
    events.cancel(0)
    assert [request.upstream for request, _ in events.live] == ["images"] * 3
    assert groups_of(events)["text"]["waits"] is False


def test_a_claim_does_not_outlive_the_last_ticket() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "images", 900)
    ask(events, "text", 300)
    events.cancel(0)
    assert isinstance(ask(events, "images", 100), Admit)


def test_a_fading_peak_wakes_those_who_want_to_borrow() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "text", 400)
    events.settle(0, Outcome.OK)
    assert reason_of(ask(events, "images", 800)) is Reason.GROUP_SHARE
    assert events.path.next_wakeup() == 1.0
    events.pass_time(6.0)
    assert not events.live
    events.pass_time(1.0)
    assert [request.upstream for request, _ in events.live] == ["images"]


def test_a_request_above_all_that_its_group_may_ever_hold_is_refused_at_once() -> None:
    events = Events(Path(config(images=(600, 700, 0), text=(400, 1000, 100)), 0.0))
    assert reason_of(ask(events, "images", 701)) is Reason.POOL_TOO_SMALL
    assert reason_of(ask(events, "text", 1001)) is Reason.POOL_TOO_SMALL
    assert isinstance(ask(events, "images", 700), Admit)


def test_an_unconfirmed_abort_keeps_its_memory_until_it_is_confirmed() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "images", 1000)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    assert isinstance(ask(events, "text", 300), Wait)
    events.confirm(0)
    assert [request.upstream for request, _ in events.live] == ["text"]


def test_of_two_that_borrow_the_one_with_less_of_its_floor_goes_first() -> None:
    events = Events(Path(config(images=(100, 1000, 0), text=(100, 1000, 0)), 0.0))
    ask(events, "images", 500)
    ask(events, "images", 400)
    ask(events, "text", 100)
    ask(events, "images", 300)
    ask(events, "text", 300)
    assert len(events.waiting) == 2
    events.settle(1, Outcome.OK)
    assert [request.upstream for request, _ in events.live] == ["images", "text", "text"]


def test_load_that_is_not_ours_counts_against_the_pool() -> None:
    events = Events(Path(config(), 0.0))
    for _ in range(2):
        events.observe("i1", running=1, kv_used_tokens=700)
    assert groups_of(events)["images"]["foreign_bytes"] == 700
    assert isinstance(ask(events, "text", 350), Wait)
    events.apply(config(images=(500, 1000, 0)))
    assert groups_of(events)["images"]["foreign_bytes"] == 700
    events.observe("i1", running=0, kv_used_tokens=0)
    assert len(events.live) == 1
    assert groups_of(events)["images"]["foreign_bytes"] == 0


def test_a_reload_takes_what_runs_into_the_groups_and_lets_it_out_again() -> None:
    shared = config()
    alone = replace(shared, groups=GroupsConfig(), replicas=(replace(IMAGES, group=None), replace(TEXT, group=None)))
    events = Events(Path(alone, 0.0))
    ask(events, "images", 800)
    events.apply(shared)
    assert groups_of(events)["images"]["held_bytes"] == 800
    assert isinstance(ask(events, "text", 300), Wait)
    events.apply(alone)
    assert len(events.live) == 2
    assert "groups" not in events.path.view(events.now)
    events.apply(shared)
    assert [groups_of(events)[name]["held_bytes"] for name in ("images", "text")] == [800, 300]
    events.finish()


def test_a_replica_that_is_leaving_holds_its_memory_until_its_requests_end() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "images", 1000)
    events.apply(replace(config(), replicas=(TEXT,)))
    assert groups_of(events)["images"]["held_bytes"] == 1000
    assert isinstance(ask(events, "text", 300), Wait)
    events.settle(0, Outcome.OK)
    assert [request.upstream for request, _ in events.live] == ["text"]


def test_a_peak_is_remembered_over_a_reload() -> None:
    events = Events(Path(config(), 0.0))
    ask(events, "text", 400)
    events.settle(0, Outcome.OK)
    events.apply(config(images=(500, 1000, 0)))
    assert groups_of(events)["text"]["kept_bytes"] == 400


def test_an_answer_that_outgrows_a_learned_reservation_takes_more_of_the_pool_and_gives_it_all_back() -> None:
    events = Events(Path(replace(config(), slots=SlotsConfig(mode="learned")), 0.0))
    for _ in range(200):
        events.offer(upstream="text", prompt_tokens=20, max_tokens=500)
        events.first_token(0)
        events.settle(0, Outcome.OK, output_tokens=100)
        events.pass_time(0.1)
    events.offer(upstream="text", prompt_tokens=20, max_tokens=500)
    events.first_token(0)
    before = groups_of(events)["text"]["held_bytes"]
    events.write(0, 400)
    grown = groups_of(events)["text"]["held_bytes"]
    assert isinstance(before, int)
    assert isinstance(grown, int)
    assert before < 200
    assert grown >= 420
    events.settle(0, Outcome.OK)
    assert groups_of(events)["text"]["held_bytes"] == 0


def test_replicas_of_one_model_on_two_cards_each_use_their_own() -> None:
    cards = tuple(
        PoolConfig(
            name=f"card{number}",
            budget_bytes=500,
            groups=(
                GroupConfig(name=f"images{number}", floor_bytes=300, cap_bytes=500),
                GroupConfig(name=f"text{number}", floor_bytes=200, cap_bytes=500),
            ),
        )
        for number in (1, 2)
    )
    replicas = tuple(
        replace(each, name=f"{each.name}-{number}", group=f"{each.group}{number}")
        for each in (IMAGES, TEXT)
        for number in (1, 2)
    )
    events = Events(Path(replace(config(), replicas=replicas, groups=GroupsConfig(pools=cards)), 0.0))
    for _ in range(2):
        assert isinstance(ask(events, "images", 500), Admit)
    assert {permit.replica for _, permit in events.live} == {"i1-1", "i1-2"}
    assert isinstance(ask(events, "text", 100), Wait)
    assert [group["waits"] for name, group in groups_of(events).items() if name.startswith("text")] == [True, True]
    events.settle(0, Outcome.OK)
    assert [group["waits"] for name, group in groups_of(events).items() if name.startswith("text")] == [False, False]
    events.finish()


def test_a_replica_in_no_group_beside_one_that_is_in_one() -> None:
    """The second has memory of its own, so nothing waits for the pool."""
    own = replace(TEXT, name="t2", group=None)
    events = Events(Path(replace(config(), replicas=(IMAGES, TEXT, own)), 0.0))
    ask(events, "images", 1000)
    assert isinstance(ask(events, "text", 300), Admit)
    assert events.live[1][1].replica == "t2"
    for _ in range(2):
        events.observe("t2", ready=False)
    assert reason_of(ask(events, "text", 300)) is Reason.GROUP_SHARE


@pytest.mark.parametrize("broken", [replace(IMAGES, group="unknown"), replica_config("i1", "images", "images")])
def test_a_group_that_does_not_exist_or_cannot_count_bytes_is_refused(broken: object) -> None:
    with pytest.raises(ValueError, match="replica i1 needs bytes_per_token and one of the groups"):
        replace(config(), replicas=(broken, TEXT))  # type: ignore[arg-type]  # of the right type, wrong in itself
