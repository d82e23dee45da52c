"""What workers tell, put together."""

from __future__ import annotations

import pytest

from tests.load.asks_of_a_test import Even
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.crew_messages import Batch, Finished
from tidegate.load.phase import Phase
from tidegate.load.phase_tally import PhaseTally
from tidegate.load.sample import Sample

ZERO, BEGAN_S = 1000.0, 5.0
PHASE = Phase(name="p", source=Even(100), duration_s=20.0)


def sample(index: int, at: float, outcome: ClientOutcome = ClientOutcome.OK) -> Sample:
    return Sample("p", "t", index, "x", at, at + 0.01, at + 1.0, outcome, first_at=at + 0.21, status=200)


def finished(busy_share: float = 0.1) -> Finished:
    return Finished([(3, 2)], [(3, 4)], 0.5, busy_share)


def tally(phase: Phase = PHASE, workers: int = 2) -> PhaseTally:
    return PhaseTally(phase, "t", workers, BEGAN_S, ZERO)


def test_progress_adds_up_the_workers_and_has_the_times_of_the_last_seconds() -> None:
    made = tally()
    made.add(0, Batch(1009.0, [sample(0, 5.0), sample(1, 6.0, ClientOutcome.SHED)], 40, 38, 4, []))
    made.add(1, Batch(1009.0, [sample(2, 7.0)], 42, 40, 6, []))
    shown = made.progress(9.5)
    assert (shown.due, shown.sent, shown.in_flight, shown.elapsed_s) == (82, 78, 10, 4.5)
    assert shown.outcomes == {"ok": 2, "shed": 1}
    assert shown.due_rate_per_s == pytest.approx(82 / 4)
    assert shown.sent_rate_per_s == pytest.approx(78 / 4)
    assert shown.ttft_p50_s == pytest.approx(0.2)
    assert shown.e2e_p99_s == pytest.approx(0.99)
    assert shown.lag_p99_s == pytest.approx(0.01)
    later = made.progress(60.0)
    assert (later.ttft_p50_s, later.outcomes) == (None, {"ok": 2, "shed": 1})


def test_rates_are_of_the_last_seconds() -> None:
    made = tally(workers=1)
    for second in range(1, 40):
        sent = min(second, 20) * 10
        made.add(0, Batch(ZERO + BEGAN_S + second, [], sent, sent, 0, []))
        shown = made.progress(BEGAN_S + second)
        assert shown.sent_rate_per_s == pytest.approx(10.0 if second <= 20 else max(0, 30 - second), abs=1.01)


def test_nothing_is_told_before_anything_is_known() -> None:
    shown = tally().progress(4.9)
    assert (shown.elapsed_s, shown.due_rate_per_s, shown.ttft_p50_s, shown.lag_p99_s) == (0.0, None, None, None)


def test_what_was_played_is_in_the_order_in_which_it_was_due() -> None:
    made = tally()
    made.add(1, Batch(1009.0, [sample(1, 6.0)], 1, 1, 0, [0.001]))
    made.add(0, Batch(1009.0, [sample(0, 5.0), sample(2, 7.0)], 2, 2, 0, [0.002]))
    played = made.played([finished(), finished(busy_share=0.3)], None)
    assert [each.index for each in played.samples] == [0, 1, 2]
    assert played.gaps.buckets == {3: 4}
    assert played.token_gaps.count == 8
    assert (played.cpu_s, played.busiest_share, played.began_s, played.ended_s) == (1.0, 0.3, 5.0, 8.0)
    assert played.lags_s == pytest.approx([0.01] * 3)
    assert played.sending_s == 20.0
    assert played.wake_lags_s == [0.001, 0.002]


def test_a_phase_that_was_ended_early_was_sent_for_less() -> None:
    assert tally().played([finished()], 9.0).sending_s == 4.0
    assert tally().played([finished()], 4.0).sending_s == 0.0


def test_a_closed_loop_that_reached_its_count_was_sent_for_as_long_as_that_took() -> None:
    phase = Phase(name="p", source=Even(100), duration_s=20.0, users=1, count=2)
    made = tally(phase)
    made.add(0, Batch(1009.0, [sample(0, 5.0), sample(1, 6.0)], 2, 2, 0, []))
    played = made.played([finished()], None)
    assert played.sending_s == pytest.approx(2.0)
    assert played.lags_s == []
