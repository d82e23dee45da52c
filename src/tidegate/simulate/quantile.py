"""Exact quantiles of finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of ``ordered`` (ascending, not empty) does not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
