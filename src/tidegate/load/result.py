"""All that a finished run says, in one value: what JSON, pages and comparisons are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.verdict import Verdict


@dataclass(slots=True, kw_only=True)
class Result:
    plan: str
    seed: int
    targets: list[str]
    began: str
    """ISO 8601, with the time zone."""
    command: str
    """The command line that makes this run again."""
    manifest: dict[str, Any]
    """What was sent, with hashes, and what sent it (SPEC S2-25, S0-99)."""
    phases: list[PhaseFigures]
    verdicts: list[Verdict] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    """Of all phases; where there are any, no gate is passed."""
    consistency: dict[str, Any] = field(default_factory=dict)
    """Same question, same answer? (SPEC S2-37); empty: no phase asked it."""
    break_point: dict[str, Any] = field(default_factory=dict)
    """Where a run until failure ended (SPEC S2-30)."""
    knee: dict[str, Any] = field(default_factory=dict)
    """Where latency starts to degrade (SPEC S3-45)."""
    compared: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By target but the first: its ratios to the first, turn by turn, with intervals (``side_by_side.Ratio``)."""
    score_card: dict[str, Any] = field(default_factory=dict)
    """Of several targets: who is better in which tier (SPEC S1-61); empty: there is one target."""
    engine: dict[str, Any] = field(default_factory=dict)
    """Readings of the target's own metrics and of GPUs over the run, where there are any."""
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool | None:
        """None: no gates were asked for. A required bar that could not be judged is not passed."""
        if not self.verdicts:
            return None
        counted = [verdict.passed for verdict in self.verdicts if verdict.is_judged or verdict.is_required]
        return not self.invalid and bool(counted) and all(counted)
