"""Detection and recovery from samples whose truth is known."""

from __future__ import annotations

from tests.load.made_samples import sample
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills import recovery
from tidegate.load.sample import Sample

BROKEN, TIMEOUT, SHED = ClientOutcome.BROKEN, ClientOutcome.TIMEOUT, ClientOutcome.SHED


def steady(until: float, every_s: float = 0.5, e2e_s: float = 0.4) -> list[Sample]:
    return [sample(index * every_s, e2e_s, index=index) for index in range(int(until / every_s))]


def with_failures(samples: list[Sample], from_at: float, to_at: float, outcome: ClientOutcome = BROKEN) -> list[Sample]:
    return [sample(each.due_at, 0.1, outcome) if from_at <= each.due_at < to_at else each for each in samples]


def test_a_fault_that_no_client_sees_is_detected_at_once() -> None:
    assert recovery.detected_s(steady(30), 10.0, 20.0) == 0.0


def test_detection_lasts_until_the_last_request_that_failed_was_due() -> None:
    assert recovery.detected_s(with_failures(steady(30), 10.0, 12.1), 10.0, 20.0) == 2.0


def test_failures_until_the_healing_are_no_detection() -> None:
    assert recovery.detected_s(with_failures(steady(30), 10.0, 20.0), 10.0, 20.0) is None


def test_without_a_request_during_the_fault_nobody_can_tell() -> None:
    assert recovery.detected_s([sample(1.0), sample(25.0)], 10.0, 20.0) is None


def test_refusals_for_load_are_no_failures() -> None:
    assert recovery.detected_s(with_failures(steady(30), 10.0, 20.0, SHED), 10.0, 20.0) == 0.0


def test_a_service_that_was_well_all_the_time_has_recovered_at_once() -> None:
    assert recovery.recovered_s(steady(30), 20.0, 30.0, 0.4) == 0.0


def test_recovery_ends_with_the_last_slice_that_had_an_error() -> None:
    assert recovery.recovered_s(with_failures(steady(40), 20.0, 23.0), 20.0, 40.0, 0.4) == 4.0


def test_a_slow_slice_is_no_recovery() -> None:
    slow = [sample(each.due_at, 3.0) if 22.0 <= each.due_at < 24.0 else each for each in steady(40)]
    assert recovery.recovered_s(slow, 20.0, 40.0, 0.4) == 4.0


def test_errors_to_the_end_are_no_recovery() -> None:
    assert recovery.recovered_s(with_failures(steady(30), 20.0, 30.0), 20.0, 30.0, 0.4) is None


def test_without_a_baseline_or_a_look_afterwards_there_is_no_recovery() -> None:
    assert recovery.recovered_s(steady(30), 20.0, 30.0, None) is None
    assert recovery.recovered_s(steady(30), 29.0, 30.0, 0.4) is None


def test_late_is_three_times_the_baseline() -> None:
    answers = [sample(0.0, 2.9), sample(0.0, 3.1), sample(0.0, 9.0, TIMEOUT)]
    assert recovery.late_count(answers, 1.0) == 1
    assert recovery.late_count(answers, None) == 0


def test_shares_and_percentiles_of_nothing_are_none() -> None:
    assert recovery.p95_s([sample(0.0, 1.0, BROKEN)]) is None
    assert recovery.error_share([]) is None
    assert recovery.error_share([sample(), sample(outcome=BROKEN)]) == 0.5


def test_moments_are_seconds_with_answers_errors_and_p95() -> None:
    found = recovery.moments([sample(0.25, 0.5), sample(1.5, 0.1, BROKEN)], 1.5)
    assert found == [(0.0, 1, 0, 0.5), (1.0, 0, 1, None)]
