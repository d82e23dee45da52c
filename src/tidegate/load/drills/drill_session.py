"""One run of one or several drills on one deployment, from its start to its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tidegate.load.drills.affordable_rate import affordable
from tidegate.load.drills.broken_journal import BrokenJournal
from tidegate.load.drills.deployment import Deployment
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_pace import SHORT, Pace
from tidegate.load.drills.drill_results import DrillResults
from tidegate.load.drills.drill_runner import DrillRunner
from tidegate.load.drills.drill_sections import DeploymentSection
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.given_deployment import GivenDeployment
from tidegate.load.drills.own_deployment import OwnDeployment, OwnFault
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.to_its_end import to_its_end

RATED_S, RATED_SHORT_S = 10.0, 3.0
"""For so long the machine is measured before the first drill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    given: DeploymentSection | None = None
    """None: a deployment of its own."""
    replicas: int = 2
    """Of its own."""
    rate_per_s: float | None = None
    """None: what the drill file says, or what this machine can do."""
    seed: int = 1
    is_short: bool = False
    folder: Path = Path("drills")
    command: str = ""

    @property
    def pace(self) -> Pace:
        pace = SHORT if self.is_short else Pace()
        if self.given is not None:
            pace = replace(pace, rate_per_s=self.given.rate_per_s, peak_per_s=self.given.peak_per_s)
        return pace if self.rate_per_s is None else replace(pace, rate_per_s=self.rate_per_s)


class DrillSession:
    """``say`` gets a line of what happens, ``on_findings`` each drill's when it is over."""

    def __init__(
        self,
        options: SessionOptions,
        faults: Mapping[str, OwnFault],
        say: Callable[[str], None],
        on_findings: Callable[[Findings], None] = lambda _: None,
    ) -> None:
        self._options = options
        self._faults = faults
        self._say = say
        self._on_findings = on_findings
        self.is_interrupted = False

    def play(self, drills: Sequence[Drill]) -> DrillResults:
        """Blocks. SIGINT and SIGTERM end it early, after what is broken has been put back. Raises TidegateError."""
        results = DrillResults(
            began=datetime.now().astimezone().isoformat(timespec="seconds"),
            command=self._options.command,
            deployment="own" if self._options.given is None else self._options.given.name,
            seed=self._options.seed,
            is_short=self._options.is_short,
            rate_per_s=0.0,
        )
        asyncio.run(self._interruptible(drills, results))
        if self.is_interrupted:
            results.notes.append("interrupted: the drills that follow were not played")
        return results

    async def _interruptible(self, drills: Sequence[Drill], results: DrillResults) -> None:
        loop = asyncio.get_running_loop()
        playing = loop.create_task(self._play(drills, results))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt, playing)
        await asyncio.wait((playing,))
        if not playing.cancelled():
            playing.result()

    def _interrupt(self, playing: asyncio.Task[None]) -> None:
        self._say("interrupted: what is broken is put back first" if not self.is_interrupted else "still putting back")
        if not self.is_interrupted:
            self.is_interrupted = True
            playing.cancel()

    async def _play(self, drills: Sequence[Drill], results: DrillResults) -> None:
        with ExitStack() as files:
            deployment = self._deployment(files)
            try:
                pace = await self._rated(deployment)
                results.rate_per_s = pace.rate_per_s
                runner = DrillRunner(deployment, pace, self._options.seed, self._say)
                for drill in drills:
                    findings = await runner.run(drill)
                    results.findings.append(findings)
                    self._on_findings(findings)
            finally:
                await to_its_end(deployment.close())

    def _deployment(self, files: ExitStack) -> Deployment:
        options = self._options
        if options.given is not None:
            journal = BrokenJournal(options.folder / f"broken-{options.given.name}.json")
            return GivenDeployment(options.given, journal, self._say)
        folder = Path(files.enter_context(TemporaryDirectory(prefix="tidegate-drill-")))
        return OwnDeployment(folder, options.replicas, self._faults, self._say)

    async def _rated(self, deployment: Deployment) -> Pace:
        """Of the own deployment what the machine can do is measured: nobody is disturbed by it."""
        options = self._options
        if options.given is not None:
            return options.pace
        await deployment.prepare(Setup())
        for_s = RATED_SHORT_S if options.is_short else RATED_S
        pace = await affordable(deployment.target, options.pace, len(deployment.replicas), for_s)
        rate_per_s = pace.rate_per_s if options.rate_per_s is None else options.rate_per_s
        peak_per_s = pace.peak_per_s or 0.0
        self._say(f"{peak_per_s:.1f} requests/s are what it can do here; the steady load is {rate_per_s:g} requests/s")
        return replace(pace, rate_per_s=rate_per_s)
