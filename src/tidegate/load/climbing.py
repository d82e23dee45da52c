"""Runs that choose their loads as they go: steps of users, until something breaks or as they were listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidegate.load.breaking import Climb
from tidegate.load.load_run import LoadRun
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.user_step import user_step


async def climb_until_failure(run: LoadRun, climb: Climb, step_s: float) -> None:
    """Each step is chosen by what the ones before have shown. The first target's figures decide."""
    steps = Steps(run, step_s)
    while (users := climb.next_users()) is not None:
        figures = await steps.play(users)
        if not figures:
            climb.ended = "stopped by a signal"
            return
        climb.observe(figures[0])


async def play_steps(run: LoadRun, users: Iterable[int], step_s: float) -> None:
    """In the order in which they stand."""
    steps = Steps(run, step_s)
    for number in users:
        await steps.play(number)


class Steps:
    """Takes the place of the plan's phases: the run's plan, and so its manifest, holds what was played."""

    def __init__(self, run: LoadRun, step_s: float) -> None:
        """Raises ConfigError for a plan of which no users can be made."""
        user_step(run.plan, 1, step_s)
        self._run = run
        self._plan = run.plan
        self._step_s = step_s
        run.plan = replace(run.plan, phases=(), after_peak=None)

    async def play(self, users: int) -> list[PhaseFigures]:
        """By target; nothing where the run was stopped."""
        run = self._run
        if run.is_stopped:
            return []
        step = user_step(self._plan, users, self._step_s)
        names = [phase.name for phase in run.plan.phases]
        if step.name in names:
            step = replace(step, name=f"{step.name}-again-{len(names)}")
        run.plan = replace(run.plan, phases=(*run.plan.phases, step))
        return await run.play(step)
