"""A figure by its dotted name: ``ttft.p95``, ``outcomes.shed``, ``answered_per_s``."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.distribution import Distribution
from tidegate.load.phase_figures import PartFigures, PhaseFigures

_DISTRIBUTIONS = ("ttft", "tpot", "e2e", "scheduled_e2e", "worst_gap", "queue", "model_time")
_QUANTILES = ("p50", "p95", "p99", "p999")
RATES = frozenset({"error_rate", "timeout_rate", "shed_rate", "degraded_rate"})
SHARES = RATES | {"availability", "goodput_share", "counted_share", "generator_busiest_share"}


def _part_names() -> list[str]:
    plain = [each.name for each in fields(PartFigures) if each.name not in (*_DISTRIBUTIONS, "outcomes")]
    spread = [f"{name}.{part}" for name in _DISTRIBUTIONS for part in (*_stems(Distribution), "jitter")]
    return [*plain, *spread, *(f"outcomes.{outcome.value}" for outcome in ClientOutcome)]


def _stems(kind: type[Distribution]) -> list[str]:
    return [each.name for each in fields(kind)]


def _phase_names() -> list[str]:
    plain = ["due_rate_per_s", "sent_rate_per_s", "answered_per_s", "output_tokens_per_s", "recovered_in_s"]
    gaps = [f"{name}.{part}" for name in ("inter_chunk", "inter_token") for part in _QUANTILES]
    lag = [f"lag.{part}" for part in (*_stems(Distribution), "jitter")]
    return [*plain, *gaps, *lag, "generator_cpu_s", "generator_busiest_share", "duration_s"]


OF_A_PART = frozenset(_part_names())
"""Told of a phase, of a label and of a tenant."""
OF_A_PHASE = frozenset(_phase_names())
FIGURE_NAMES = OF_A_PART | OF_A_PHASE


def value_of_figure(figures: PhaseFigures, part: PartFigures, name: str) -> float | None:
    """None: there is nothing to tell it by. ``name`` is one of ``FIGURE_NAMES``."""
    found: Any = part if name in OF_A_PART else figures
    if name.startswith("outcomes."):
        return float(part.outcomes.get(name.partition(".")[2], 0))
    for step in name.split("."):
        found = found.get(step) if isinstance(found, dict) else getattr(found, step, None)
    return None if found is None else float(found)


def values_behind(part: PartFigures, name: str) -> int | None:
    """How many values a percentile is of; None: the figure is of no distribution."""
    head, _, tail = name.partition(".")
    if head not in _DISTRIBUTIONS or not tail:
        return None
    found: Distribution | None = getattr(part, head)
    return 0 if found is None else found.count
