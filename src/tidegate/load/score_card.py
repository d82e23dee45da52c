"""Which service to choose (SPEC S1-61): stability first, then performance and cost, then quality.

Tiers and the figures in them are compared in order, and the first clear difference decides. No weights: a service
that is twice as fast does not make up for one that fails, however the numbers are added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.load.figure_text import NOTHING, digits, rate_text, seconds_text, share_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.rated_bars import rated

STABILITY = "1 · stability"
COST = "2 · performance and cost"
QUALITY = "3 · quality"


@dataclass(frozen=True, slots=True)
class Criterion:
    tier: str
    name: str
    show: Callable[[float | None], str]
    is_more_better: bool
    tolerance: float
    """Share of the better value up to which two are equal."""
    floor: float
    """And the absolute difference up to which they are."""


CRITERIA: dict[str, Criterion] = {
    "error_rate": Criterion(STABILITY, "errors", share_text, False, 0.1, 0.001),
    "p99": Criterion(STABILITY, "P99", seconds_text, False, 0.1, 0.02),
    "recovery": Criterion(STABILITY, "recovery after the spike", seconds_text, False, 0.2, 5.0),
    "availability": Criterion(STABILITY, "availability", share_text, True, 0.0, 0.001),
    "throughput": Criterion(COST, "answers per second", rate_text, True, 0.05, 0.0),
    "p50": Criterion(COST, "P50", seconds_text, False, 0.05, 0.01),
    "cost": Criterion(
        COST, "cost per 1000 answers", lambda value: NOTHING if value is None else digits(value), False, 0.05, 0.0
    ),
    "quality": Criterion(
        QUALITY, "quality", lambda value: NOTHING if value is None else digits(value), True, 0.02, 0.0
    ),
    "similarity": Criterion(QUALITY, "similarity of its answers", share_text, True, 0.02, 0.0),
}
"""In the order in which they decide. A figure that only one target has decides nothing."""


@dataclass(frozen=True, slots=True)
class ScoreCard:
    targets: tuple[str, ...]
    values: dict[str, dict[str, float | None]]
    """By criterion, by target."""
    best: str
    """Empty: no clear difference in anything."""
    decided_by: str
    """The criterion's name."""

    def rows(self) -> list[list[str]]:
        """Tier, criterion, and each target's value."""
        return [
            [each.tier, each.name, *(each.show(self.values[key][target]) for target in self.targets)]
            for key, each in CRITERIA.items()
            if any(value is not None for value in self.values[key].values())
        ]


def score_card(
    figures: Sequence[PhaseFigures],
    plan: Plan,
    *,
    costs_per_h: Mapping[str, float] | None = None,
    qualities: Mapping[str, float] | None = None,
    consistencies: Mapping[str, Mapping[str, Any]] | None = None,
) -> ScoreCard:
    """``costs_per_h``: what each target costs; ``qualities``: scores of a test of one's own; both by target."""
    targets = tuple(dict.fromkeys(each.target for each in figures))
    costs, scores, same = costs_per_h or {}, qualities or {}, consistencies or {}
    told = {
        target: {
            **_measured([each for each in figures if each.target == target], plan, costs.get(target)),
            "quality": scores.get(target),
            "similarity": same.get(target, {}).get("mean_similarity"),
        }
        for target in targets
    }
    values = {key: {target: told[target][key] for target in targets} for key in CRITERIA}
    return ScoreCard(targets, values, *_decide(targets, values))


def _measured(figures: Sequence[PhaseFigures], plan: Plan, cost_per_h: float | None) -> dict[str, float | None]:
    """Of the phases at rated load; recovery is of the burst, throughput of the phase that answered most."""
    phases = rated(figures, plan)
    times = [each.all.scheduled_e2e for each in phases if each.all.scheduled_e2e is not None]
    peak = max((each.answered_per_s for each in figures), default=0.0)
    spikes = [each for each in figures if each.watched_after_spike_s is not None]
    lost = any(each.recovered_in_s is None for each in spikes)
    return {
        "error_rate": max((each.all.error_rate for each in phases), default=None),
        "p99": max((each.p99 for each in times), default=None),
        "recovery": float("inf") if lost else max((each.recovered_in_s or 0.0 for each in spikes), default=None),
        "availability": min((each.all.availability for each in phases), default=None),
        "throughput": peak or None,
        "p50": max((each.p50 for each in times), default=None),
        "cost": 1000 * cost_per_h / 3600 / peak if cost_per_h is not None and peak else None,
    }


def _decide(targets: Sequence[str], values: Mapping[str, Mapping[str, float | None]]) -> tuple[str, str]:
    """Targets that are clearly behind the best in one criterion are out; the last one left wins."""
    left = list(targets)
    for key, each in CRITERIA.items():
        told = {target: value for target in left if (value := values[key][target]) is not None}
        if len(told) < 2:
            continue
        best = max(told.values()) if each.is_more_better else min(told.values())
        left = [target for target in left if target not in told or _is_near(told[target], best, each)]
        if len(left) == 1:
            return left[0], each.name
    return "", ""


def _is_near(value: float, best: float, criterion: Criterion) -> bool:
    return value == best or abs(value - best) <= max(criterion.floor, criterion.tolerance * abs(best))
