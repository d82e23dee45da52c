"""One row of the parameter map: a set of parameters, what it ran on, and what a load test of it came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from tidegate.load.figure_name import FIGURE_NAMES, value_of_figure
from tidegate.load.phase_figures import PhaseFigures

KEPT = (
    "users", "due_rate_per_s", "answered_per_s", "output_tokens_per_s", "goodput_per_s", "goodput_share", "ttft.p50",
    "ttft.p95", "ttft.p99", "tpot.p50", "tpot.p99", "e2e.p50", "e2e.p95", "e2e.p99", "e2e.jitter", "scheduled_e2e.p50",
    "scheduled_e2e.p95", "scheduled_e2e.p99", "worst_gap.p99", "p95_std_s", "error_rate", "timeout_rate", "shed_rate",
    "degraded_rate", "availability", "recovered_in_s",
)  # fmt: skip
"""Figures that are kept of each phase."""
ABOUT = ("id", "model", "card", "engine", "version", "workload", "date")
"""What rows are looked up by, beside parameters."""


class MapEntry(msgspec.Struct, kw_only=True):
    id: str = ""
    """Given by the map."""
    date: str
    """ISO 8601."""
    model: str
    card: str
    """The accelerator, or the processor."""
    engine: str
    version: str
    """Of the engine."""
    workload: str
    """The plan's name; equal names are compared."""
    params: dict[str, Any]
    """As they stand in tidegate.yaml: sections in sections."""
    results: dict[str, dict[str, float]]
    """Figures by phase, of those that were measured."""
    is_valid: bool = True
    """The generator kept up."""
    passed: bool | None = None
    """Its gates; None: none were asked for."""
    command: str = ""
    note: str = ""

    def value(self, figure: str, phase: str = "") -> float | None:
        """In ``phase``; without one in the soak, else in the last phase that tells it."""
        named = (self.results.get(phase),) if phase else (self.results.get("soak"), *reversed(self.results.values()))
        return next((part[figure] for part in named if part is not None and figure in part), None)

    def matches(self, filters: Mapping[str, str]) -> bool:
        """``filters``: patterns by ``model``, ``card`` … or by a parameter's dotted name."""
        told = {name: str(getattr(self, name)) for name in ABOUT} | {
            dotted: str(value) for dotted, value in flat(self.params)
        }
        return all(name in told and fnmatchcase(told[name], pattern) for name, pattern in filters.items())


def results_of(figures: Sequence[PhaseFigures]) -> dict[str, dict[str, float]]:
    """Of one target's phases."""
    return {each.phase: {name: value for name in KEPT if (value := _value(each, name)) is not None} for each in figures}


def _value(figures: PhaseFigures, name: str) -> float | None:
    if name in FIGURE_NAMES:
        return value_of_figure(figures, figures.all, name)
    return None if figures.users is None else float(figures.users)


def flat(params: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and values, down to what is no section."""
    for key, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
