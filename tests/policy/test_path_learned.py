"""Reservations by learned lengths: what is admitted, what grows, and what its growth holds back."""

from __future__ import annotations

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.replica import Replica
from tidegate.policy.slots import SlotsConfig

DECLARED = 2048
POOL = replica_config("a1", kv_tokens=4096, slot_tokens=64, sequences=100)


def start(mode: str = "learned", answers: int = 300, output_tokens: int = 100) -> tuple[Events, Replica]:
    """A path that has seen so many answers of one length."""
    slots = SlotsConfig(mode="learned") if mode == "learned" else SlotsConfig()
    events = Events(Path(PathConfig(replicas=(POOL,), slots=slots), 0.0))
    for _ in range(answers):
        events.offer(prompt_tokens=28, max_tokens=DECLARED)
        events.first_token(0)
        events.settle(0, Outcome.OK, output_tokens=output_tokens)
        events.pass_time(0.1)
    return events, events.path.upstreams["a"].replicas[0]


def admit(events: Events, **fields: object) -> Permit:
    decision = events.offer(**({"prompt_tokens": 28, "max_tokens": DECLARED} | fields))
    assert isinstance(decision, Admit)
    return decision.permit


def test_worst_case_admits_what_may_come_and_learned_what_will() -> None:
    for mode, most in (("worst_case", 1), ("learned", 20)):
        events, replica = start(mode)
        admitted = 0
        while isinstance(events.offer(prompt_tokens=28, max_tokens=DECLARED), Admit):
            admitted += 1
        assert admitted >= most
        assert admitted <= most * 1.5
        assert replica.slots.held <= (replica.slots.total or 0)


def test_before_anything_is_learned_the_worst_case_is_reserved() -> None:
    events, replica = start(answers=0)
    assert admit(events).slots == replica.slots.needed(28, DECLARED, 1)


def test_an_answer_that_outgrows_its_reservation_gets_more_and_gives_all_of_it_back() -> None:
    events, replica = start()
    permit = admit(events)
    first = permit.slots
    events.first_token(0)
    events.write(0, permit.expected_tokens)
    assert permit.slots == first
    events.write(0, permit.expected_tokens + 1)
    assert permit.slots > first
    assert replica.slots.in_use == permit.slots
    assert permit.expected_tokens < permit.reserved_tokens <= DECLARED
    events.write(0, DECLARED)
    assert permit.reserved_tokens == DECLARED
    assert permit.slots == replica.slots.needed(28, DECLARED, 1)
    events.settle(0, Outcome.OK, output_tokens=DECLARED)
    assert (replica.slots.held, replica.slots.overdrafts) == (0, 0)


def test_several_sequences_grow_together() -> None:
    events, replica = start()
    permit = admit(events, sequences=2)
    events.first_token(0)
    events.write(0, 2 * permit.expected_tokens)
    assert permit.reserved_tokens == 0
    events.write(0, 2 * permit.expected_tokens + 1)
    assert permit.slots == replica.slots.needed(28, permit.reserved_tokens, 2)


def test_growth_beyond_the_pool_stops_nobody_and_lets_nobody_in_until_it_ends() -> None:
    events, replica = start()
    first, second = admit(events), admit(events)
    assert first.slots == second.slots
    events.first_token(0)
    events.first_token(0)
    events.write(0, DECLARED)
    events.write(1, DECLARED)
    assert replica.slots.held > (replica.slots.total or 0)
    assert replica.slots.free == 0
    decision = events.offer(prompt_tokens=28, max_tokens=DECLARED)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.SLOTS
    events.check()
    events.settle(0, Outcome.OK, output_tokens=DECLARED)
    assert not events.waiting


def test_what_is_not_running_or_does_not_learn_does_not_grow() -> None:
    events, _ = start()
    permit = admit(events)
    before = permit.slots
    events.path.progress(permit, Progress.TOKENS, events.now, DECLARED)
    assert permit.slots == before
    events, _ = start("worst_case")
    permit = admit(events)
    before = permit.slots
    events.first_token(0)
    events.path.progress(permit, Progress.TOKENS, events.now, DECLARED + 5)
    assert permit.slots == before


def test_what_grows_in_a_model_that_is_gone_is_only_written_down() -> None:
    events, _ = start()
    permit = admit(events)
    events.first_token(0)
    before = permit.slots
    events.apply(PathConfig(replicas=(replica_config("b1", "b"),), slots=SlotsConfig(mode="learned")))
    events.path.progress(permit, Progress.TOKENS, events.now, DECLARED)
    assert permit.slots == before
    assert events.path.find(permit.request_id).output_tokens == DECLARED


def test_preemptions_in_a_reading_make_reservations_larger() -> None:
    events, replica = start()
    learned = admit(events).slots
    for preemptions in (5, 6):
        events.pass_time(1.0)
        events.observe("a1", preemptions=preemptions)
    careful = admit(events).slots
    assert learned < careful < replica.slots.needed(28, DECLARED, 1)


@pytest.mark.parametrize("counts", [(None, 5), (5, None), (5, 5), (5, 2)])
def test_a_count_that_did_not_grow_is_no_preemption(counts: tuple[int | None, int | None]) -> None:
    events, _ = start()
    learned = admit(events).slots
    for preemptions in counts:
        events.pass_time(1.0)
        events.observe("a1", preemptions=preemptions)
    assert admit(events).slots == learned


def test_lengths_are_kept_over_a_restart_and_shown() -> None:
    events, _ = start()
    again = Path(events.path.config, 0.0)
    again.restore(events.path.dump(events.now), 0.0)
    assert again.dump(0.0)["lengths"] == events.path.dump(events.now)["lengths"]
    lengths = again.view(0.0)["lengths"]
    assert isinstance(lengths, dict)
    assert lengths["a"]["answers"] == 300
    without = events.path.dump(events.now)
    del without["lengths"]
    Path(events.path.config, 0.0).restore(without, 0.0)
