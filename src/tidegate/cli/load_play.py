"""One plan played from a command: live view, figures, verdicts, files."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from rich.console import Console

from tidegate.load.consistency import consistency
from tidegate.load.crew import Crew
from tidegate.load.engine_watch import EngineWatch
from tidegate.load.gate_rules import Gates, judge
from tidegate.load.knee import knees
from tidegate.load.live_view import LiveView
from tidegate.load.load_run import TURN_S, LoadRun
from tidegate.load.manifest import manifest
from tidegate.load.plan import Plan
from tidegate.load.result import Result
from tidegate.load.run_folder import RunFolder
from tidegate.load.score_card import score_card
from tidegate.load.side_by_side import side_by_side
from tidegate.load.summary_table import print_summary
from tidegate.load.target import Target

SECRET_OPTIONS = ("--header",)
MISSED, INVALID = 1, 3
"""Exit statuses of a run that missed a bar, and of one that says nothing about its target; 0: neither."""
STOPPED = "stopped by a signal: what was played until then is all that is told here"

Steps = Callable[[LoadRun], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class LoadPlay:
    """``play`` it once."""

    plan: Plan
    targets: Sequence[Target]
    folder: Path
    console: Console
    gates: Gates | None = None
    processes: int | None = None
    turn_s: float = TURN_S
    steps: Steps = LoadRun.play_all
    """What is played: all of the plan, or a search for a break point."""
    finish: Callable[[Result], None] = lambda _result: None
    """Adds to the result before it is written and shown."""
    against: Result | None = None
    """An earlier run that the page shows beside this one."""
    notes: list[str] = field(default_factory=list)
    is_stopped: bool = False
    """By a signal: nothing else is wanted."""

    def play(self) -> Result:
        """Files are written and the summary is printed.

        Raises ConfigError before anything is sent, ``WorkerLostError`` where a part of the load was lost.
        """
        folder = RunFolder(self.folder)
        began = datetime.now().astimezone().isoformat(timespec="seconds")
        run, watch = asyncio.run(self._send())
        self.is_stopped = run.is_stopped
        result = Result(
            plan=run.plan.name,
            seed=run.plan.seed,
            targets=[target.name for target in self.targets],
            began=began,
            command=command_line(sys.argv),
            manifest=manifest(run.plan),
            phases=run.figures,
            verdicts=[] if self.gates is None else judge(run.figures, self.gates, run.plan),
            invalid=[f"{each.phase}, {each.target}: {why}" for each in run.figures for why in each.invalid],
            consistency=consistency(run.played, seed=run.plan.seed),
            knee={target: knee.told() for target, knee in knees(run.figures).items()},
            engine=watch.readings(),
            notes=[*self.notes, *_told(run)],
        )
        if len(self.targets) > 1:
            self._compare(result, run)
        self.finish(result)
        files = folder.write(result, run.played, self.against)
        print_summary(result, self.console, files)
        return result

    async def _send(self) -> tuple[LoadRun, EngineWatch]:
        title = f"{self.plan.name} → {', '.join(each.name for each in self.targets)}"
        async with Crew(self.targets, self.plan.seed, self.processes) as crew, EngineWatch(self.targets) as watch:
            with LiveView(self.console, title) as view:
                run = LoadRun(self.plan, self.targets, crew, view.on_progress, view.on_figures, self.turn_s)

                def stop() -> None:
                    run.is_stopped = True
                    crew.stop()

                for each in (signal.SIGINT, signal.SIGTERM):
                    asyncio.get_running_loop().add_signal_handler(each, stop)
                await self.steps(run)
        return run, watch

    def _compare(self, result: Result, run: LoadRun) -> None:
        first, *others = result.targets
        turns = {target: [each for each in run.played if each.target == target] for target in result.targets}
        for target in others:
            ratios = side_by_side(turns[first], turns[target])
            result.compared[target] = [asdict(each) for each in ratios]
            result.notes += [f"{target} to {first}: {each.phase}, {each.figure} {each.text}" for each in ratios]
        card = score_card(run.figures, run.plan)
        result.score_card = {"best": card.best, "decided_by": card.decided_by, "rows": card.rows()}


def _told(run: LoadRun) -> list[str]:
    peak = run.plan.notes.get("measured_peak_per_s")
    return [*([STOPPED] if run.is_stopped else []), *([f"measured peak, answers per second: {peak}"] if peak else [])]


def default_folder() -> Path:
    """Named after the moment, in the current folder."""
    return Path(f"load-{datetime.now().astimezone():%Y%m%d-%H%M%S}")


def command_line(arguments: Sequence[str]) -> str:
    """As it was typed, without the values of headers."""
    shown, hides = ["tidegate"], False
    for each in arguments[1:]:
        name, separator, _ = each.partition("=")
        if hides:
            shown.append(f"{each.partition(':')[0].partition('=')[0]}: ...")
        elif name in SECRET_OPTIONS and separator:
            shown.append(f"{name}=...")
        else:
            shown.append(each)
        hides = each in SECRET_OPTIONS
    return shlex.join(shown)
