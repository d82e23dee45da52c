"""What a reload or an operator changes while requests are running."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.policy.marks import MarkKind


@dataclass(frozen=True, slots=True)
class Drain:
    """Give a replica no more requests (``on`` True), or give it requests again."""

    replica: str
    on: bool = True


@dataclass(frozen=True, slots=True)
class SetMark:
    """Hold a key back for a while."""

    kind: MarkKind
    key: str
    ttl_s: float
    reason: str
    evidence: str


@dataclass(frozen=True, slots=True)
class LiftMark:
    """Take a mark away before its time."""

    kind: MarkKind
    key: str


@dataclass(frozen=True, slots=True)
class Diff:
    """What ``Path.apply`` changed, one line each, for the log and the audit."""

    lines: tuple[str, ...]
