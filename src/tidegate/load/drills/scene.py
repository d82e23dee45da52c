"""A drill while it is played: its load, its steps, and what must be put back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from tidegate.errors import TidegateError
from tidegate.load.ask import Ask
from tidegate.load.drills.deployment import Deployment
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.recovery import between, error_share, p95_s, recovered_s
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender

LEAST_USUAL = 5
"""Fewer requests say nothing of what is usual."""
LONGEST_BASELINE = LONGEST_AFTERMATH = 3
"""So many times as long as meant is looked on: for enough requests before, for a recovery afterwards."""

Undo = Callable[[], Awaitable[None]]


class Scene:
    """Times are seconds since its load began."""

    def __init__(self, deployment: Deployment, pace: Pace, findings: Findings, zero: float) -> None:
        self.deployment = deployment
        self.pace = pace
        self.findings = findings
        self.samples: list[Sample] = []
        """Of the steady load and of what was sent beside it, as they end."""
        self.views: list[tuple[float, Mapping[str, Any]]] = []
        """What the gateway's admin API showed, and when."""
        self._zero = zero
        self._undoing: list[tuple[str, Undo]] = []

    def now(self) -> float:
        return time.monotonic() - self._zero

    async def hold(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def baseline(self) -> None:
        """Let the load run, and learn what is usual from here on."""
        began = self.now()
        usual: list[Sample] = []
        while len(usual) < LEAST_USUAL and self.now() - began < LONGEST_BASELINE * self.pace.baseline_s:
            await self.hold(self.pace.baseline_s)
            usual = between(self.samples, began, self.now())
        self.findings.baseline_requests = len(usual)
        self.findings.baseline_p95_s = p95_s(usual)
        self.findings.baseline_error_share = error_share(usual)

    def victims(self, fault: str, count: int = 1) -> list[str]:
        """Replicas to break: the first that can be broken so."""
        return list(self.deployment.breakable(fault)[:count])

    async def note_running(self, *replicas: str) -> None:
        """Remember what runs on them and may be lost with them: ``running`` of the drill's figures."""
        view = await self.deployment.view()
        known = {} if view is None else view["replicas"]
        running = [known[name]["in_flight"] for name in replicas if name in known]
        self.findings.figures["running"] = float(sum(running)) if running else None

    async def break_(self, fault: str, replica: str | None = None) -> None:
        """Break it; whatever happens, it is restored. Raises TidegateError where it can't be broken."""
        what = fault if replica is None else f"{fault} of {replica}"
        self.on_restore(what, lambda: self.deployment.restore(fault, replica))
        self.mark_broken()
        await self.deployment.break_(fault, replica)

    def mark_broken(self) -> None:
        """The fault begins; only the first one counts."""
        if self.findings.broken_at is None:
            self.findings.broken_at = self.now()

    def mark_healed(self) -> None:
        if self.findings.broken_at is not None and self.findings.healed_at is None:
            self.findings.healed_at = self.now()

    def mark_ended(self) -> None:
        """What comes now is no part of the recovery."""
        self.findings.ended_at = self.now()

    async def watch(self, every_s: float) -> None:
        """Keep looking at the gateway's view, until cancelled."""
        while True:
            view = await self.deployment.view()
            if view is not None:
                self.views.append((self.now(), view))
            await asyncio.sleep(every_s)

    def on_restore(self, what: str, undo: Undo) -> None:
        """Have ``undo`` done when the fault is over. ``what``: for people, should that fail."""
        self._undoing.append((what, undo))

    async def fault_time(self) -> None:
        await self.hold(self.pace.fault_s)

    async def restore(self) -> None:
        """Put back all that is broken, the latest first. What can't be put back is told, and the rest goes on."""
        while self._undoing:
            what, undo = self._undoing.pop()
            try:
                await undo()
            except (TidegateError, OSError) as error:
                self.findings.left_broken.append(f"{what}: {error}")
        self.mark_healed()

    async def aftermath(self) -> None:
        """See that all is as it was; look on for a while where it is not yet."""
        found, healed_at = self.findings, self.now() if self.findings.healed_at is None else self.findings.healed_at
        for _ in range(LONGEST_AFTERMATH):
            await self.hold(self.pace.after_s)
            if recovered_s(self.samples, healed_at, self.now(), found.baseline_p95_s) is not None:
                return

    async def send(self, asks: Iterable[Ask], duration_s: float) -> list[Sample]:
        """Send these beside the steady load, when they are due from now on; returns when all have ended."""
        found: list[Sample] = []

        def keep(sample: Sample) -> None:
            found.append(sample)
            self.samples.append(sample)

        sender = Sender(self.deployment.target, self._zero)
        try:
            await sender.open_loop(iter(asks), time.monotonic(), duration_s, keep, "beside")
        finally:
            await sender.close()
        return found
