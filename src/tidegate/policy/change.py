"""What a reload or an operator changes while requests are running."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drain:
    """Give a replica no more requests (``on`` True), or give it requests again."""

    replica: str
    on: bool = True


@dataclass(frozen=True, slots=True)
class Diff:
    """What ``Path.apply`` changed, one line each, for the log and the audit."""

    lines: tuple[str, ...]
