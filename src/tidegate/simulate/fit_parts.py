"""Which requests of a run an engine is fitted to, and which it is held against."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidegate.errors import ConfigError
from tidegate.simulate.load_row import LoadRow

BLOCKS = 10
"""Every other one is fitted: a machine gets slower and faster in minutes, and both parts shall see all of it."""

Parts = tuple[frozenset[int], frozenset[int]]
"""Indices of rows: fitted, and held out."""


def by_blocks(rows: Sequence[LoadRow]) -> Parts:
    """Alternate blocks of requests in order of time."""
    order = sorted(range(len(rows)), key=lambda index: rows[index].at)
    fitted = frozenset(index for place, index in enumerate(order) if place * BLOCKS // len(order) % 2 == 0)
    return fitted, frozenset(order) - fitted


def by_phases(rows: Sequence[LoadRow], fitted: Collection[str]) -> Parts:
    """Those of the phases whose names begin with one of ``fitted``, and all others. Raises ConfigError."""
    names = list(dict.fromkeys(row.phase for row in rows))
    chosen = {name for name in names if name.startswith(tuple(fitted))}
    if not chosen or len(chosen) == len(names):
        which = "none" if not chosen else "all"
        raise ConfigError([f"--fit {','.join(fitted)}: {which} of the phases {', '.join(names)} begin so"])
    mine = frozenset(index for index, row in enumerate(rows) if row.phase in chosen)
    return mine, frozenset(range(len(rows))) - mine
