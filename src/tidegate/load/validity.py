"""Whether a phase tells about its target, or about the generator."""

from __future__ import annotations

from tidegate.load.figure_text import seconds_text, share_text
from tidegate.load.phase import Phase
from tidegate.load.played import Played
from tidegate.simulate.quantile import quantile

MOST_LAG_S = 0.05
MOST_BUSY_SHARE = 0.8


def problems(played: Played, phase: Phase) -> tuple[str, ...]:
    """What is wrong with it, in words; empty: nothing."""
    found = []
    lag_s = quantile(sorted(played.lags_s), 0.99) if played.lags_s and phase.users is None else 0.0
    if lag_s > MOST_LAG_S:
        found.append(f"the generator sent late (P99 {seconds_text(lag_s)}): give it more processes or cores")
    if played.busiest_share > MOST_BUSY_SHARE:
        found.append(f"the generator was busy for {share_text(played.busiest_share)} of the time: more processes")
    return tuple(found)
