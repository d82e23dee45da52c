"""All phases of one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.load.phase import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An answer within it is good; goodput counts those. Not a deadline: clients wait longer."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    name: str
    seed: int
    phases: tuple[Phase, ...]
    objective: Objective = Objective()
    objectives: dict[str, Objective] = field(default_factory=dict)
    """By tenant, or by label, in place of the plan's."""
    notes: dict[str, str] = field(default_factory=dict)
    """Parameters and sources, for the manifest."""
    after_peak: Callable[[float], tuple[Phase, ...]] | None = None
    """Makes the phases that follow, of the peak in requests per second that these have shown: the most successful
    answers per second of any step (SPEC S1-49). None: the plan is complete."""
