"""When a phase tells about the generator and not about its target."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.load.asks_of_a_test import Even
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.gap_counts import GapCounts
from tidegate.load.phase import Phase
from tidegate.load.played import Played
from tidegate.load.sample import Sample
from tidegate.load.validity import lag_bound_s, problems

PHASE = Phase(name="p", source=Even(100), duration_s=2.0)


def sample(index: int, *, lag_s: float = 0.0, ttft_s: float = 0.05, code: str = "") -> Sample:
    due = index / 100
    sent = 0.0 if code else due + lag_s
    outcome = ClientOutcome.UNSENT if code else ClientOutcome.OK
    first = sent + ttft_s
    return Sample("p", "t", index, "x", due, sent, due + 1.0, outcome, code=code, first_at=first, status=200)


def played(*samples: Sample, busiest_share: float = 0.1, wake_lags_s: Sequence[float] = ()) -> Played:
    lags = [each.lag_s for each in samples if each.sent_at]
    return Played(
        phase="p",
        target="t",
        began_s=0.0,
        ended_s=3.0,
        sending_s=2.0,
        samples=[*samples],
        gaps=GapCounts(),
        token_gaps=GapCounts(),
        busiest_share=busiest_share,
        lags_s=lags,
        wake_lags_s=[*wake_lags_s],
    )


def test_a_phase_that_was_sent_in_time_is_valid() -> None:
    assert problems(played(*map(sample, range(1, 200))), PHASE) == ()
    assert problems(played(), PHASE) == ()


def test_lag_above_ten_milliseconds_is_told_with_its_p99() -> None:
    late = [sample(index, lag_s=0.02 if index % 50 == 0 else 0.001) for index in range(1, 200)]
    (text,) = problems(played(*late), PHASE)
    assert "lag P99 20.0 ms, at most 10.0 ms" in text


def test_a_slow_answer_makes_room_for_lag() -> None:
    late = [sample(index, lag_s=0.02, ttft_s=1.0) for index in range(1, 150)]
    assert lag_bound_s(played(*late)) == pytest.approx(0.1)
    assert problems(played(*late), PHASE) == ()


def test_one_late_ask_of_a_few_is_an_accident_and_two_are_not() -> None:
    few = [sample(index) for index in range(1, 8)]
    assert problems(played(*few, sample(9, lag_s=0.05)), PHASE) == ()
    assert problems(played(*few, sample(9, lag_s=0.05), sample(10, lag_s=0.05)), PHASE) != ()


def test_users_who_wait_have_no_schedule_to_be_late_for() -> None:
    closed = Phase(name="p", source=Even(100), duration_s=2.0, users=3)
    assert problems(played(*(sample(index, lag_s=3.0) for index in range(1, 200))), closed) == ()


def test_a_generator_that_woke_late_saw_the_answers_of_waiting_users_late() -> None:
    closed = Phase(name="p", source=Even(100), duration_s=2.0, users=3)
    samples = [sample(index) for index in range(1, 20)]
    assert problems(played(*samples, wake_lags_s=[0.001] * 99 + [0.2]), closed) == ()
    (text,) = problems(played(*samples, wake_lags_s=[0.001] * 97 + [0.2] * 3), closed)
    assert "was woken late (lag P99 200 ms" in text


def test_a_busy_process_is_told() -> None:
    (text,) = problems(played(sample(1), busiest_share=0.81), PHASE)
    assert "busy for 81.0 %" in text


def test_requests_without_a_socket_are_told_and_those_of_a_stopped_run_are_not() -> None:
    (text,) = problems(played(sample(1), sample(2, code="EMFILE")), PHASE)
    assert "EMFILE" in text
    assert problems(played(sample(1), sample(2, code="run_ended")), PHASE) == ()


def test_what_was_sent_after_the_phase_was_due_in_it() -> None:
    slow = [sample(index, lag_s=0.0 if index < 150 else 3.0, ttft_s=20.0) for index in range(1, 200)]
    found = problems(played(*slow), PHASE)
    assert any("74.9 % of what was due in time" in text for text in found)
