"""One run: the phases of a plan, each against every target in short turns, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from tidegate.load.measures import measure
from tidegate.load.phase import Kind, Phase
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
        """All phases of the plan, in order, and those that it makes of the measured peak."""
        await self._play_each(self.plan.phases)
        peak_per_s = measured_peak(self.figures)
        if self.plan.after_peak is None or peak_per_s is None or self.is_stopped:
            return
        phases = self.plan.after_peak(peak_per_s) if peak_per_s > 0 else ()
        told = f"{peak_per_s:.4g}" if phases else "0: no step was answered while it was held, so nothing follows it"
        self.plan = replace(
            self.plan,
            phases=self.plan.phases + phases,
            after_peak=None,
            notes={**self.plan.notes, "measured_peak_per_s": told},
        )
        await self._play_each(phases)

    async def _play_each(self, phases: Sequence[Phase]) -> None:
        for phase in phases:
            if not self.is_stopped:
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


def measured_peak(figures: Sequence[PhaseFigures]) -> float | None:
    """Most answers per second of any step, of the weakest target: all of them get the same load. None: no step."""
    peaks: dict[str, float] = {}
    for each in figures:
        if each.kind == Kind.STEP:
            peaks[each.target] = max(peaks.get(each.target, 0.0), each.answered_per_s)
    return min(peaks.values(), default=None)
