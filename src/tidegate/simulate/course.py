"""P95 TTFT over the time of a run, in slices that fit a line of a terminal or a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tidegate.simulate.figures import ttft_s, windows
from tidegate.simulate.quantile import quantile
from tidegate.simulate.visit import Visit

SLICES = 60


@dataclass(frozen=True, slots=True)
class Course:
    slice_s: float
    tails_s: list[float | None]
    """P95 TTFT per slice, by first call; unanswered requests at the time they gave up. None: nobody called."""


def course(visits: Sequence[Visit]) -> Course:
    last = max((visit.demand.at for visit in visits), default=0.0)
    slice_s = max(1.0, ceil(last / SLICES))
    tails = {index: quantile(sorted(map(ttft_s, group)), 0.95) for index, group in windows(visits, slice_s).items()}
    return Course(slice_s, [tails.get(index) for index in range(int(last // slice_s) + 1)])
