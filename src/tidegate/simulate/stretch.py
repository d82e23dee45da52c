"""A part of a load run between two moments at which its engine had nothing to do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tidegate.simulate.load_row import LoadRow

AT_ONCE_S = 0.02
"""A user of a closed loop asks again within it."""
MOSTLY = 0.9


@dataclass(frozen=True, slots=True)
class Stretch:
    """Of one engine and one phase. A phase is over when its last answer has come, so stretches share no step."""

    indices: tuple[int, ...]
    """Of rows, in the order in which they were sent."""
    users: int = 0
    """Of a closed loop: so many are sent at their times, and each of the others when an answer has come; 0: all are
    sent at their times. A closed loop's times say nothing by themselves: played at them on an engine that is slower by
    a hair, requests meet that never met."""
    pause_s: float = 0.0
    """Between an answer and the next request of a closed loop."""


def stretches(rows: Sequence[LoadRow]) -> list[Stretch]:
    found = []
    for engine in dict.fromkeys(row.engine for row in rows):
        mine = sorted((row.at, index) for index, row in enumerate(rows) if row.engine == engine)
        found += [_stretch(rows, part) for part in _parts(rows, [index for _, index in mine])]
    return found


def _parts(rows: Sequence[LoadRow], order: list[int]) -> list[list[int]]:
    """Cut where the phase changes and nothing is under way."""
    parts = [[order[0]]]
    busy_until = rows[order[0]].last_at
    for before, index in pairwise(order):
        row = rows[index]
        if row.phase != rows[before].phase and row.at >= busy_until:
            parts.append([])
        parts[-1].append(index)
        busy_until = max(busy_until, row.last_at)
    return parts


def _stretch(rows: Sequence[LoadRow], order: list[int]) -> Stretch:
    ends = sorted(rows[index].last_at for index in order)
    users = sum(rows[index].at < ends[0] for index in order)
    later = [rows[index].at for index in order[users:]]
    if not later or not all(rows[index].is_whole for index in order):
        return Stretch(tuple(order))
    ended = [bisect_right(ends, at) for at in later]
    pauses = [at - ends[count - 1] for at, count in zip(later, ended, strict=True)]
    # In a closed loop as many are under way after each request as there are users.
    steady = sum(
        users + place + 1 - count == users and pause <= AT_ONCE_S
        for place, (count, pause) in enumerate(zip(ended, pauses, strict=True))
    )
    if steady < MOSTLY * len(later):
        return Stretch(tuple(order))
    return Stretch(tuple(order), users, median(pauses))
