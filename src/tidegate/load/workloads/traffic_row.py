"""One request of traffic that is known beforehand: a scenario's, a trace's, or a log's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidegate.load.ask import PATIENCE_S
from tidegate.simulate.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRow:
    at_s: float
    prompt_tokens: int
    output_tokens: int
    label: str
    tenant: str = ""
    session: str = ""
    """Its prompts begin alike: a later one contains an earlier one that is shorter."""
    blocks: tuple[int, ...] = ()
    """Ids of the prompt's first blocks (``Demand.blocks``): equal ids, equal words."""
    headers: tuple[tuple[str, str], ...] = ()
    patience_s: float = PATIENCE_S
    code: str = ""
    """With which it was refused for what it was: one of that kind is sent, and must be refused so again."""


def stretched(rows: Iterable[TrafficRow], scale: float, time_scale: float, seed: int) -> tuple[TrafficRow, ...]:
    """The same course in ``time_scale`` of the time at ``scale`` times the rate: rows are left out or sent several
    times, by chance, and none is changed but in its time. One is always left."""
    rows = tuple(rows)
    if scale == time_scale == 1.0:
        return rows
    rng = stream(seed, "load/stretched")
    copies, part = divmod(scale * time_scale, 1)
    found: list[TrafficRow] = []
    for row in rows:
        moved = replace(row, at_s=row.at_s * time_scale)
        found += [moved] * (int(copies) + (rng.random() < part))
    return tuple(found) or rows[:1]
