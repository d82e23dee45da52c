"""Short turns of a phase, so that several targets meet the same asks on the same machine at nearly the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, takewhile
from math import ceil

from tidegate.load.ask import Ask
from tidegate.load.phase import Phase
from tidegate.load.source import Source

ASKS_A_TURN = 1_000_000
"""Room for the numbers of one turn's asks: an ask's number is its own in the whole phase."""


@dataclass(frozen=True, slots=True)
class Window:
    """The asks of an open loop that are due in ``begin_s <= due < end_s``, from the beginning of the window."""

    source: Source
    begin_s: float
    end_s: float

    @property
    def title(self) -> str:
        return self.source.title

    def asks(self, seed: int) -> Iterator[Ask]:
        early = takewhile(lambda ask: ask.due_s < self.end_s, self.source.asks(seed))
        return (replace(ask, due_s=ask.due_s - self.begin_s) for ask in early if ask.due_s >= self.begin_s)

    def salted(self, salt: str) -> Window:
        return replace(self, source=self.source.salted(salt))


@dataclass(frozen=True, slots=True)
class Again:
    """Other asks of a closed loop for each turn, the same for all targets."""

    source: Source
    turn: int

    @property
    def title(self) -> str:
        return self.source.title

    def asks(self, seed: int) -> Iterator[Ask]:
        numbers = count(self.turn * ASKS_A_TURN)
        # A prime far above the seeds that people choose: no turn repeats what another seed's first turn sends.
        asks = self.source.asks(seed + self.turn * 1_000_003)
        return (replace(ask, index=number) for ask, number in zip(asks, numbers, strict=False))

    def salted(self, salt: str) -> Again:
        return replace(self, source=self.source.salted(salt))


def turns_of(phase: Phase, turn_s: float) -> list[Phase]:
    """``phase`` in equal turns of at most ``turn_s``, each a phase of the same name.

    One with a spike stays whole: half of a spike is another experiment.
    """
    number = ceil(phase.duration_s / turn_s - 1e-9)
    if number < 2 or phase.spike is not None:
        return [phase]
    length_s = phase.duration_s / number
    if phase.users is None:
        windows = [Window(phase.source, turn * length_s, (turn + 1) * length_s) for turn in range(number)]
        return [replace(phase, source=window, duration_s=length_s) for window in windows]
    counts = _shares(phase.count, number)
    return [
        replace(phase, source=Again(phase.source, turn), duration_s=length_s, count=counts[turn])
        for turn in range(number)
        if counts[turn] != 0
    ]


def _shares(total: int | None, number: int) -> list[int | None]:
    if total is None:
        return [None] * number
    return [total // number + (turn < total % number) for turn in range(number)]
