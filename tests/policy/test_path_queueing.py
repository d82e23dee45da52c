"""Who goes next through Path: nobody stands who has a place, and nobody passes one who has."""

from __future__ import annotations

from dataclasses import replace

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig

CONFIG = PathConfig(replicas=(replica_config("a1"),))
"""32 slots of 256 tokens, 8 sequences."""


def half_full(config: PathConfig = CONFIG) -> Events:
    """Half of the slots are taken, and a giant that needs more than the other half waits."""
    events = Events(Path(config, 0.0))
    for _ in range(4):
        assert isinstance(events.offer(prompt_tokens=1000, max_tokens=24), Admit)
        events.first_token(0)
    assert isinstance(events.offer(prompt_tokens=4000, max_tokens=1000), Wait)
    return events


def small(events: Events, **fields: object) -> Admit | Wait:
    decision = events.offer(prompt_tokens=100, max_tokens=100, **fields)
    assert isinstance(decision, Admit | Wait)
    return decision


def test_one_of_another_class_that_fits_goes_past_a_giant_at_once() -> None:
    events = half_full()
    decision = small(events)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.BEHIND_OTHERS
    assert len(events.live) == 5
    assert len(events.waiting) == 1


def test_one_of_its_own_class_waits_behind_it_and_goes_when_the_giant_leaves() -> None:
    events = half_full()
    small(events, class_hint="long")
    assert len(events.waiting) == 2
    events.cancel(0)
    assert not events.waiting
    assert len(events.live) == 5


def test_a_giant_is_passed_as_often_as_the_bound_says_and_then_all_wait_for_it() -> None:
    events = half_full(replace(CONFIG, queue=QueueConfig(max_overtakes=2)))
    for _ in range(4):
        small(events)
    # The first had its turn, being of the heavier class; two passed the giant, and the fourth may not.
    assert len(events.live) == 7
    assert len(events.waiting) == 2
    for _ in range(3):
        events.first_token(0)
    for _ in range(4):
        events.settle(0, Outcome.OK)
    assert 4000 in {request.prompt_tokens for request, _ in events.live}
    events.first_token(0)
    assert not events.waiting


def test_while_somebody_waits_nobody_is_placed_before_its_turn() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=1),)), 0.0))
    for _ in range(3):
        small(events)
    events.settle(0, Outcome.OK)
    small(events)
    assert [request.id for request, _ in events.live] == [2]
    for expected in (3, 4):
        events.settle(0, Outcome.OK)
        assert [request.id for request, _ in events.live] == [expected]


def test_the_earliest_deadline_goes_first() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=1),)), 0.0))
    small(events)
    for patience_s in (8.0, 4.0, 6.0):
        small(events, first_byte_by=patience_s)
    order = []
    for _ in range(3):
        events.settle(0, Outcome.OK)
        order.append(events.live[0][0].first_byte_by)
    assert order == [4.0, 6.0, 8.0]


def test_several_that_fit_now_go_in_one_advance() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    events.observe("a1", ready=False)
    for _ in range(10):
        small(events)
    events.observe("a1")
    assert (len(events.live), len(events.waiting)) == (8, 2)


def test_answers_beside_each_other_count_one_by_one() -> None:
    events = Events(Path(CONFIG, 0.0))
    assert isinstance(small(events, sequences=3), Admit)
    replica = events.path.upstreams["a"].replicas[0]
    assert (replica.in_flight, replica.slots.held) == (3, 3)
    decision = small(events, sequences=6)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.SEQUENCES
    events.settle(0, Outcome.OK)
    assert (replica.in_flight, replica.slots.held) == (6, 6)


def test_one_that_is_aborted_and_not_confirmed_keeps_its_place() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=1),)), 0.0))
    small(events)
    small(events)
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    assert not events.live
    events.confirm(0)
    assert len(events.live) == 1


def test_models_do_not_wait_for_each_other() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=1), replica_config("b1", "b"))), 0.0))
    small(events)
    assert isinstance(small(events), Wait)
    assert isinstance(small(events, upstream="b"), Admit)
