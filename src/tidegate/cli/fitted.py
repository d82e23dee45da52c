"""What one calibration found, as the command tells it."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.simulate.calibration import Calibration
from tidegate.simulate.fit_parts import Parts
from tidegate.simulate.likeness import Likeness
from tidegate.simulate.load_row import LoadRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """All that one calibration found."""

    records: str
    rows: list[LoadRow]
    left_out: dict[str, int]
    parts: Parts
    calibration: Calibration
    check: list[Likeness]

    @property
    def worst_error(self) -> float:
        return max((abs(each.error) for each in self.check), default=0.0)
