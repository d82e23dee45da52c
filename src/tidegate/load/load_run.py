"""One run: the phases of a plan, each against every target in short turns, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from tidegate.load.measures import measure
from tidegate.load.phase import Phase
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.played import Played
from tidegate.load.progress import Progress
from tidegate.load.target import Target
from tidegate.load.turn import turns_of

TURN_S = 30.0
"""Long enough for a queue to build and drain, short beside the minutes in which a shared machine changes its pace."""


class Player(Protocol):
    """What sends: ``Crew``."""

    async def play(self, phase: Phase, target: Target, on_progress: Callable[[Progress], None]) -> Played: ...


@dataclass(slots=True)
class LoadRun:
    """Feed it phases; it keeps what was played and measured."""

    plan: Plan
    targets: Sequence[Target]
    player: Player
    on_progress: Callable[[Progress], None]
    on_figures: Callable[[PhaseFigures], None]
    """Called after each phase, once for each target."""
    turn_s: float = TURN_S
    """Of each target, where there are several."""
    figures: list[PhaseFigures] = field(default_factory=list)
    played: list[Played] = field(default_factory=list)
    is_stopped: bool = False
    """Set from outside: the phase that runs is ended by who plays it, and no other begins."""

    async def play_all(self) -> None:
        """All phases of the plan, in order."""
        for phase in self.plan.phases:
            if self.is_stopped:
                return
            await self.play(phase)

    async def play(self, phase: Phase) -> list[PhaseFigures]:
        """One phase against every target; its figures, by target."""
        found: dict[str, list[Played]] = {target.name: [] for target in self.targets}
        for turn in turns_of(phase, self.turn_s) if len(self.targets) > 1 else [phase]:
            for target in self._order(phase, len(self.played)):
                if not self.is_stopped:
                    salted = replace(turn, source=turn.source.salted(self._salt(target)))
                    played = await self.player.play(salted, target, self.on_progress)
                    found[target.name].append(played)
                    self.played.append(played)
        measured = [measure(phase, each, self.plan) for each in found.values() if each]
        for figures in measured:
            self.figures.append(figures)
            self.on_figures(figures)
        return measured

    def _salt(self, target: Target) -> str:
        return target.name if len(self.targets) > 1 else ""

    def _order(self, phase: Phase, turn: int) -> list[Target]:
        """Another one in each turn: who comes second may find the machine, or a cache, as the first has left it."""
        order = [*self.targets]
        Random(f"{self.plan.seed}/{phase.name}/{turn}").shuffle(order)  # noqa: S311 - an order, not a secret
        return order
