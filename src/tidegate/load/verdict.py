"""One bar, and whether it was met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    name: str
    row: str
    """Of the requirements: where the bar comes from."""
    bar: str
    """As people say it: ``P99 <= 10 s``."""
    measured: str
    """With its unit, and where it was measured."""
    passed: bool | None
    """None: the run has nothing to judge it by, and that is no pass."""
    why: str = ""
    """Of one that failed or was not judged: what to look at or to run."""
    target: str = ""
    """Of which target; empty: the run has one."""
    is_required: bool = True
    """False: where it could not be judged, the run passes without it (``passed`` is still None, and shown)."""

    @property
    def is_judged(self) -> bool:
        return self.passed is not None
