"""An upgrade is held against the row that it replaces (SPEC S2-36): no figure may get worse."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.load.figure_bar import figure_text
from tidegate.load.map_entry import MapEntry
from tidegate.load.verdict import Verdict

TOLERANCE = 0.1
"""Two runs of one service differ by as much on a busy machine."""
RATE_TOLERANCE = 0.001
"""Of errors and refusals, absolute."""


@dataclass(frozen=True, slots=True)
class _Watched:
    figure: str
    is_more_better: bool = False


WATCHED = (
    _Watched("error_rate"),
    _Watched("timeout_rate"),
    _Watched("shed_rate"),
    _Watched("scheduled_e2e.p50"),
    _Watched("scheduled_e2e.p95"),
    _Watched("scheduled_e2e.p99"),
    _Watched("ttft.p95"),
    _Watched("tpot.p50"),
    _Watched("answered_per_s", is_more_better=True),
    _Watched("output_tokens_per_s", is_more_better=True),
)


def upgrade_verdicts(before: MapEntry, after: MapEntry, tolerance: float = TOLERANCE) -> list[Verdict]:
    """One for each figure that both have, phase by phase; where they have no phase in common, one that is not judged.

    ``tolerance``: by how much a figure may get worse, of what it was.
    """
    if before.workload != after.workload:
        why = f"{before.workload!r} and {after.workload!r} are other loads: run the upgrade with the plan of the row"
        return [_unjudged(before, why)]
    if not (before.is_valid and after.is_valid):
        return [_unjudged(before, "a run was invalid: its generator did not keep up")]
    found = [
        _verdict(watched, phase, (part[watched.figure], new[watched.figure]), tolerance)
        for phase, part in before.results.items()
        if (new := after.results.get(phase)) is not None
        for watched in WATCHED
        if watched.figure in part and watched.figure in new
    ]
    return found or [_unjudged(before, "they have no phase in common")]


def _unjudged(before: MapEntry, why: str) -> Verdict:
    return Verdict(name="upgrade", row="S2-36", bar=f"no worse than {before.id}", measured="–", passed=None, why=why)


def _verdict(watched: _Watched, phase: str, pair: tuple[float, float], tolerance: float) -> Verdict:
    figure, (old, new) = watched.figure, pair
    worse = old - new if watched.is_more_better else new - old
    allowed = RATE_TOLERANCE if figure.endswith("_rate") else tolerance * abs(old)
    bound = old - allowed if watched.is_more_better else old + allowed
    passed = worse <= allowed
    return Verdict(
        name=f"{figure} in {phase}",
        row="S2-36",
        bar=f"{'>=' if watched.is_more_better else '<='} {figure_text(figure, bound)}",
        measured=f"{figure_text(figure, new)}, was {figure_text(figure, old)}",
        passed=passed,
        why=""
        if passed
        else "read the change log of what was upgraded, and keep the old version until it is understood",
    )
