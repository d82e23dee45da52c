"""A reload while requests run and wait: nothing is dropped, nothing leaks, and the books still agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.change import Drain
from tidegate.policy.classes import BATCH, INTERACTIVE, ClassConfig
from tidegate.policy.decisions import Admit, Reason, Refuse, Wait
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.margin import MarginConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.retries import RetriesConfig
from tidegate.policy.slots import SlotsConfig

A1, A2, B1 = replica_config("a1", sequences=1), replica_config("a2", sequences=1), replica_config("b1", "b")
BOTH = PathConfig(replicas=(A1, A2))


def without(*names: str) -> PathConfig:
    return PathConfig(replicas=tuple(each for each in (A1, A2) if each.name not in names))


def loaded() -> Events:
    """One runs on each replica, the first of them with its first token, and one waits."""
    events = Events(Path(BOTH, 0.0))
    for _ in range(2):
        assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Admit)
    events.first_token(0)
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait)
    return events


def on(events: Events, replica: str) -> int:
    return next(index for index, (_, permit) in enumerate(events.live) if permit.replica == replica)


def test_a_removed_replica_gets_no_more_and_its_running_attempts_end_in_its_own_ledger() -> None:
    events = loaded()
    a1 = events.path.upstreams["a"].replicas[0]
    events.apply(without("a1"))
    events.settle(on(events, "a1"), Outcome.OK)
    assert events.waiting
    assert (a1.in_flight, a1.slots.held, a1.permits) == (0, 0, {})
    events.settle(on(events, "a2"), Outcome.OK)
    assert [permit.replica for _, permit in events.live] == ["a2"]
    events.check()
    events.finish()


def test_a_replica_that_comes_back_while_busy_comes_back_with_its_load() -> None:
    events = loaded()
    a1 = events.path.upstreams["a"].replicas[0]
    events.apply(without("a1"))
    events.apply(BOTH)
    assert events.path.upstreams["a"].replicas[0] is a1
    assert a1.in_flight == 1
    assert events.waiting
    events.check()
    events.settle(on(events, "a1"), Outcome.OK)
    assert [permit.replica for _, permit in events.live] == ["a2", "a1"]
    events.finish()


def test_one_that_came_back_after_two_reloads_still_has_its_aborts() -> None:
    events = loaded()
    events.settle(on(events, "a1"), Outcome.CLIENT_LEFT, still_running=True)
    for config in (without("a1"), without("a1", "a2"), BOTH):
        events.apply(config)
    a1 = events.path.upstreams["a"].replicas[0]
    assert (a1.in_flight, len(a1.aborting)) == (1, 1)
    events.pass_time(2.0)
    assert (len(a1.aborting), events.path.view(events.now)["abort_unconfirmed"]) == (0, 1)
    events.finish()


def test_an_idle_replica_that_was_removed_starts_anew() -> None:
    events = Events(Path(BOTH, 0.0))
    a1 = events.path.upstreams["a"].replicas[0]
    events.apply(without("a1"))
    events.apply(BOTH)
    assert events.path.upstreams["a"].replicas[0] is not a1


def test_aborts_of_a_removed_replica_end_by_their_grace() -> None:
    events = loaded()
    events.settle(on(events, "a1"), Outcome.CLIENT_LEFT, still_running=True)
    events.apply(without("a1"))
    events.pass_time(2.0)
    assert events.path.view(events.now)["permits"] == len(events.live)
    events.finish()


def test_those_who_wait_for_a_model_that_is_gone_are_refused_and_it_is_forgotten() -> None:
    events = loaded()
    events.apply(PathConfig(replicas=(B1,)))
    assert events.records[-1].refused is Reason.NO_REPLICA
    assert not events.waiting
    events.finish()
    events.apply(PathConfig(replicas=(B1,)))
    decision = events.offer(max_tokens=10)
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.detail) == (Reason.UNKNOWN_MODEL, "Known models: b")


def test_a_model_without_anybody_in_it_is_forgotten_at_once() -> None:
    path = Path(BOTH, 0.0)
    path.apply(PathConfig(replicas=(B1,)), 0.0)
    assert [*path.upstreams] == ["b"]


@pytest.mark.parametrize("streaming", [True, False])
def test_answers_of_a_model_that_is_gone_still_end_well(streaming: bool) -> None:
    events = Events(Path(BOTH, 0.0))
    for _ in range(2):
        events.offer(prompt_tokens=10, max_tokens=10, streaming=streaming)
    events.first_token(0)
    events.apply(PathConfig(replicas=(B1,)))
    assert "a" not in events.path.upstreams
    events.settle(0, Outcome.OK)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    events.pass_time(3.0)
    events.finish()
    assert [record.outcome for record in events.records] == [Outcome.OK, Outcome.CLIENT_LEFT]


def test_a_new_replica_takes_those_who_wait() -> None:
    events = loaded()
    events.apply(PathConfig(replicas=(A1, A2, replica_config("a3"))))
    assert not events.waiting
    assert [permit.replica for _, permit in events.live][-1] == "a3"


def test_a_replica_may_move_to_another_model_and_its_old_load_stays_apart() -> None:
    events = loaded()
    moved = replace(A1, upstream="b")
    events.apply(PathConfig(replicas=(A2, moved)))
    assert events.path.upstreams["b"].replicas[0].in_flight == 0
    assert isinstance(events.offer(upstream="b", prompt_tokens=10, max_tokens=10), Admit)
    events.check()
    events.finish()


def test_more_room_on_a_replica_is_used_at_once_and_less_is_waited_for() -> None:
    events = loaded()
    events.apply(PathConfig(replicas=(replica_config("a1", sequences=2), A2)))
    assert not events.waiting
    events.offer(prompt_tokens=10, max_tokens=10)
    events.apply(BOTH)
    events.settle(on(events, "a1"), Outcome.OK)
    assert events.waiting
    events.settle(on(events, "a1"), Outcome.OK)
    assert not events.waiting
    events.finish()


def test_tickets_of_a_class_that_is_gone_wait_on_as_interactive() -> None:
    classes = replace(BOTH.classes, classes=BOTH.classes.classes | {"vip": ClassConfig(weight=9.0, max_wait_s=20.0)})
    events = Events(Path(replace(BOTH, classes=classes), 0.0))
    for hint in (None, None, "vip", BATCH):
        events.offer(prompt_tokens=10, max_tokens=10, class_hint=hint)
    gone = {name: each for name, each in BOTH.classes.classes.items() if name != BATCH}
    events.apply(replace(BOTH, classes=replace(BOTH.classes, classes=gone)))
    assert events.path.upstreams["a"].queue.lines[INTERACTIVE].requests == 2
    assert {events.path.find(request.id).service_class for request in events.waiting.values()} == {INTERACTIVE}
    events.check()
    for _ in range(2):
        events.settle(0, Outcome.OK)
    assert not events.waiting
    events.finish()


def test_one_who_came_under_a_class_that_is_gone_can_still_be_refused_and_closed() -> None:
    events = Events(Path(BOTH, 0.0))
    events.offer(prompt_tokens=10, max_tokens=10, class_hint=BATCH)
    gone = {name: each for name, each in BOTH.classes.classes.items() if name != BATCH}
    events.apply(replace(BOTH, classes=replace(BOTH.classes, classes=gone), replicas=(A1,)))
    events.path.settle(events.live[0][1], Outcome.CONNECT_FAILED, 0.0)
    assert isinstance(events.path.again(1, Outcome.CONNECT_FAILED, 0.0), Refuse | Admit)


def test_every_sections_new_values_act_from_then_on() -> None:
    events = loaded()
    path = events.path
    new = PathConfig(
        replicas=BOTH.replicas,
        quota=QuotaConfig(max_in_flight=3),
        queue=QueueConfig(max_requests=1),
        retries=RetriesConfig(enabled=False),
        margin=MarginConfig(least=0.5, most=0.5),
        limit=LimitConfig(maximum=40),
        prefill=PrefillConfig(floor_tokens=77),
        slots=SlotsConfig(default_max_tokens=5),
    )
    events.apply(new)
    refused = events.offer(prompt_tokens=10)
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.QUOTA
    other = events.offer(prompt_tokens=10, tenant="u")
    assert isinstance(other, Refuse)
    assert other.reason is Reason.QUEUE_FULL
    assert path.margin.value == 0.5
    assert path.upstreams["a"].replicas[0].bound_tokens == 77
    path.settle(events.live[0][1], Outcome.CONNECT_FAILED, 0.0)
    path.settle(events.live[1][1], Outcome.OK, 0.0)
    events.advance()
    again = path.again(events.live[0][0].id, Outcome.CONNECT_FAILED, 0.0)
    assert isinstance(again, Refuse)


def test_slots_can_be_switched_off_and_on_again_under_load() -> None:
    events = loaded()
    events.apply(replace(BOTH, slots=SlotsConfig(enabled=False)))
    a1 = events.path.upstreams["a"].replicas[0]
    assert (a1.slots.total, a1.slots.held) == (None, 1)
    events.apply(BOTH)
    assert (a1.slots.total, a1.slots.held) == (32, 1)
    events.finish()


def test_the_diff_names_what_changed_and_nothing_else() -> None:
    path = Path(BOTH, 0.0)
    assert path.apply(BOTH, 0.0).lines == ()
    changed = replace(A2, abort_grace_s=9.0)
    new = PathConfig(replicas=(changed, B1), queue=QueueConfig(max_requests=7))
    assert path.apply(new, 0.0).lines == (
        "replica b1: added to b",
        "replica a1: removed, drains",
        "replica a2: changed",
        "queue.max_requests: 2000 -> 7",
    )


def test_a_drained_replica_gets_no_more_until_it_is_given_back() -> None:
    events = Events(Path(without("a2"), 0.0))
    assert events.path.apply(Drain("a1"), 0.0).lines == ("replica a1: draining False -> True",)
    assert events.path.apply(Drain("a1"), 0.0).lines == ()
    assert events.path.apply(Drain("nobody"), 0.0).lines == ()
    assert isinstance(events.offer(max_tokens=10), Wait)
    assert events.path.apply(Drain("a1", on=False), 0.0).lines == ("replica a1: draining True -> False",)
    events.advance()
    assert len(events.live) == 1


def test_a_drained_replica_stays_drained_over_a_reload() -> None:
    events = Events(Path(without("a2"), 0.0))
    events.path.apply(Drain("a1"), 0.0)
    events.apply(without("a2"))
    assert isinstance(events.offer(max_tokens=10), Wait)


def test_two_replicas_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="share a name: a1"):
        PathConfig(replicas=(A1, replace(A1, upstream="b")))
