from __future__ import annotations

from dataclasses import replace

import pytest

from tests.load.made_samples import figures_of, phase, plan, sample, steadily
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.score_card import score_card


def soak(target: str, e2e_s: float = 1.0, errors: int = 0, count: int = 500) -> PhaseFigures:
    samples = steadily(count, lambda k: e2e_s)
    for each in samples[:errors]:
        each.outcome = ClientOutcome.ERROR
    return replace(figures_of(samples, phase("soak", kind=Kind.SOAK)), target=target)


def burst(target: str, bad_s: float) -> PhaseFigures:
    of = phase("burst", kind=Kind.BURST, spike=(20.0, 30.0))
    samples = [sample(k / 10, 5.0 if 200 <= k < 300 + bad_s * 10 else 1.0) for k in range(1000)]
    return replace(figures_of(samples, of), target=target)


def test_twice_the_speed_does_not_make_up_for_failures() -> None:
    card = score_card([soak("steady", 2.0), soak("quick", 0.5, errors=10)], plan())
    assert (card.best, card.decided_by) == ("steady", "errors")


def test_where_both_are_stable_performance_decides_and_then_quality() -> None:
    assert score_card([soak("a"), soak("b", 0.5)], plan()).decided_by == "P99"
    more = score_card([soak("a"), soak("b", count=900)], plan())
    assert (more.best, more.decided_by) == ("b", "answers per second")
    same = [soak("a"), soak("b")]
    assert score_card(same, plan()).best == ""
    cheap = score_card(same, plan(), costs_per_h={"a": 2.0, "b": 1.0}, qualities={"a": 0.9, "b": 0.5})
    assert (cheap.best, cheap.decided_by) == ("b", "cost per 1000 answers")
    good = score_card(same, plan(), qualities={"a": 0.9, "b": 0.5})
    assert (good.best, good.decided_by) == ("a", "quality")
    told = {"a": {"mean_similarity": 0.5}, "b": {"mean_similarity": 1.0}}
    assert score_card(same, plan(), consistencies=told).best == "b"


def test_recovery_decides_before_availability_and_never_back_is_last() -> None:
    card = score_card([soak("a"), burst("a", 40.0), soak("b"), burst("b", 0.0)], plan())
    assert (card.best, card.decided_by) == ("b", "recovery after the spike")
    lost = score_card([soak("a"), burst("a", 70.0), soak("b"), burst("b", 40.0)], plan())
    assert lost.best == "b"
    assert score_card([soak("a"), burst("a", 70.0), soak("b"), burst("b", 70.0)], plan()).best == ""


def test_what_only_one_of_them_has_decides_nothing() -> None:
    assert score_card([soak("a"), soak("b")], plan(), qualities={"a": 0.1}).best == ""


def test_three_targets_drop_out_one_after_the_other() -> None:
    card = score_card([soak("a", errors=20), soak("b", 3.0), soak("c", 1.0)], plan())
    assert (card.best, card.decided_by) == ("c", "P99")


def test_the_card_shows_what_was_measured_tier_by_tier() -> None:
    rows = score_card([soak("a"), soak("b")], plan(), costs_per_h={"a": 3.6, "b": 7.2}).rows()
    assert [row[1] for row in rows][:2] == ["errors", "P99"]
    assert {row[0] for row in rows} == {"1 · stability", "2 · performance and cost"}
    costs = next(row for row in rows if row[1] == "cost per 1000 answers")
    assert float(costs[2]) == pytest.approx(3.6 / 3.6 / 4.96, rel=0.01)
    assert score_card([], plan()).rows() == []
