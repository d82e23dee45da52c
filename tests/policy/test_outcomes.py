"""Every cell of the outcome table, as it shows when an attempt through ``Path`` ends so."""

from __future__ import annotations

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.breaker import BreakerConfig
from tidegate.policy.decisions import Admit, Refuse
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.marks import MarkKind, MarksConfig
from tidegate.policy.outcomes import EFFECTS, LimitSignal, Outcome, QuotaSignal, TimingSignal, Verdict
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.sketch import quantile
from tidegate.policy.timeouts import Phase, timing_key

CONFIG = PathConfig(
    replicas=(replica_config("a1"), replica_config("a2")),
    limit=LimitConfig(window_samples=1),
    marks=MarksConfig(trigger_count=1),
    breaker=BreakerConfig(connect_failures=5),
)
LONG_AGO_S = 200.0
"""Longer than the first byte may take, so that a censored sample counts."""


def ended(outcome: Outcome, *, streaming: bool = True) -> Events:
    """One request of 100 + 50 tokens that began at 0 and ended so before its first byte."""
    events = Events(Path(CONFIG, 0.0))
    for replica in events.path.upstreams["a"].replicas:
        # A latency that is known lets the limit judge, and one held back lets it grow.
        replica.whole.learn(10, LONG_AGO_S)
        assert not replica.limit.allows(1000, 1)
    decision = events.offer(prompt_tokens=100, max_tokens=50, session="s", tenant="t", streaming=streaming)
    assert isinstance(decision, Admit)
    events.now = LONG_AGO_S
    request, permit = events.live[0]
    events.path.settle(permit, outcome, events.now, output_tokens=10, worst_gap_s=1.0)
    assert request.id == permit.request_id
    return events


@pytest.mark.parametrize("outcome", Outcome)
def test_what_it_says_about_the_replica(outcome: Outcome) -> None:
    events = ended(outcome)
    run, calls = 0, 0
    for replica in events.path.upstreams["a"].replicas:
        run += replica.breaker._run
        calls += sum(each[1] for each in replica.breaker._slices)
    expected = {Verdict.GOOD: (0, 1), Verdict.BAD: (1, 1), Verdict.SILENT: (0, 0)}
    assert (run, calls) == expected[EFFECTS[outcome].breaker]


@pytest.mark.parametrize("outcome", Outcome)
def test_what_it_tells_the_limit(outcome: Outcome) -> None:
    events = ended(outcome, streaming=False)
    used = {permit.replica for _, permit in events.live}
    value = next(each.limit.value for each in events.path.upstreams["a"].replicas if each.name in used)
    expected = {LimitSignal.SAMPLE: 12.0, LimitSignal.DROP: 7.2, LimitSignal.IGNORE: 8.0}
    assert value == pytest.approx(expected[EFFECTS[outcome].limit])


@pytest.mark.parametrize("outcome", Outcome)
def test_what_it_teaches_the_timeouts(outcome: Outcome) -> None:
    events = ended(outcome)
    learned = events.path.timeouts._learned.get(timing_key("a", "interactive", 100))
    held = {} if learned is None else {phase: sketch.count for phase, sketch in learned.sketches.items()}
    phases = {
        Outcome.OK: {Phase.TOTAL: 1, Phase.GAP: 1, Phase.FIRST_BYTE: 0},
        Outcome.CLIENT_LEFT: {Phase.FIRST_BYTE: 1, Phase.GAP: 0, Phase.TOTAL: 0},
        Outcome.OUTRUN: {Phase.FIRST_BYTE: 1, Phase.GAP: 0, Phase.TOTAL: 0},
        Outcome.FIRST_BYTE_TIMEOUT: {Phase.FIRST_BYTE: 1, Phase.GAP: 0, Phase.TOTAL: 0},
        Outcome.GAP_TIMEOUT: {Phase.GAP: 1, Phase.FIRST_BYTE: 0, Phase.TOTAL: 0},
        Outcome.TOTAL_TIMEOUT: {Phase.FIRST_BYTE: 0, Phase.GAP: 0, Phase.TOTAL: 0},
    }
    assert held == phases.get(outcome, {})
    assert (outcome in phases) == (EFFECTS[outcome].timing is not TimingSignal.IGNORE)
    timed_out = 0.0 if learned is None else learned.timed_out
    assert (timed_out > 0) == (EFFECTS[outcome].counts_against_client)


@pytest.mark.parametrize("outcome", Outcome)
def test_what_its_tenant_pays(outcome: Outcome) -> None:
    events = ended(outcome)
    events.path.close(1, events.now)
    account = events.path.quota.accounts["t"]
    expected = {QuotaSignal.SETTLE: (110, 40), QuotaSignal.REFUND: (0, 150)}
    assert (account.settled, account.refunded) == expected[EFFECTS[outcome].quota]
    assert (account.open, account.in_flight) == (0, 0)


@pytest.mark.parametrize("outcome", Outcome)
def test_whether_it_may_be_tried_elsewhere(outcome: Outcome) -> None:
    events = ended(outcome)
    if EFFECTS[outcome].retry:
        assert isinstance(events.path.again(1, outcome, events.now), Admit)
    else:
        with pytest.raises(ValueError, match=outcome.value):
            events.path.again(1, outcome, events.now)


@pytest.mark.parametrize("outcome", Outcome)
def test_whether_it_counts_against_the_session(outcome: Outcome) -> None:
    events = ended(outcome)
    mark = events.path.marks.find(MarkKind.SESSION, "s", events.now)
    assert (mark is not None) == EFFECTS[outcome].counts_against_client
    events.path.close(1, events.now)
    events.live.clear()
    assert isinstance(events.offer(session="s", max_tokens=10), Refuse) == EFFECTS[outcome].counts_against_client


def test_a_failure_of_one_without_a_session_marks_nobody() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.offer(max_tokens=10)
    events.settle(0, Outcome.FIRST_BYTE_TIMEOUT)
    assert len(events.path.marks) == 0


def test_a_first_byte_that_is_late_only_by_the_clients_limit_is_not_the_replicas_fault() -> None:
    events = Events(Path(CONFIG, 0.0))
    for _ in range(30):
        events.offer(max_tokens=10, first_byte_by=events.now + 2.0)
        events.now += 2.0
        events.settle(0, Outcome.FIRST_BYTE_TIMEOUT)
        assert events.records[-1].outcome is Outcome.TOTAL_TIMEOUT
    for replica in events.path.upstreams["a"].replicas:
        assert replica.breaker._run == 0
        assert replica.limit.value == 8.0


def test_a_first_byte_that_is_late_by_our_measure_is_the_replicas_fault() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.offer(max_tokens=10, first_byte_by=1000.0)
    events.now = events.live[0][1].first_byte_by
    assert events.now == 120.0
    events.settle(0, Outcome.FIRST_BYTE_TIMEOUT)
    assert events.records[-1].outcome is Outcome.FIRST_BYTE_TIMEOUT


def test_a_total_time_that_is_over_by_our_own_measure_is_learned() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.offer(max_tokens=10)
    events.now = events.live[0][1].total_by
    events.settle(0, Outcome.TOTAL_TIMEOUT)
    learned = events.path.timeouts._learned[timing_key("a", "interactive", 1)]
    assert learned.sketches[Phase.TOTAL].count == 1


def test_an_answer_that_fell_silent_teaches_how_long_the_silence_was_not_how_long_the_answer() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.offer(max_tokens=10)
    events.pass_time(1.0)
    events.first_token(0)
    events.pass_time(500.0)
    events.settle(0, Outcome.GAP_TIMEOUT)
    learned = events.path.timeouts._learned[timing_key("a", "interactive", 1)]
    assert quantile([learned.sketches[Phase.GAP]], 0.5, events.now) == pytest.approx(60.0, rel=0.05)


def test_one_who_leaves_in_the_middle_of_an_answer_teaches_nothing_about_its_first_byte() -> None:
    events = Events(Path(CONFIG, 0.0))
    events.offer(max_tokens=10)
    events.pass_time(1.0)
    events.first_token(0)
    events.pass_time(100.0)
    events.settle(0, Outcome.CLIENT_LEFT)
    learned = events.path.timeouts._learned[timing_key("a", "interactive", 1)]
    assert learned.sketches[Phase.FIRST_BYTE].count == 1
