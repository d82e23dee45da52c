"""Plays drills on a deployment, one after the other, and always puts back what they broke."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tidegate.errors import TidegateError
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills import recovery
from tidegate.load.drills.abort_rule import AbortRule
from tidegate.load.drills.deployment import Deployment
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.drills.to_its_end import to_its_end
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender

LOOK_EVERY_S = 0.25
VIEW_EVERY_S = 0.5
RESTORED_WITHIN_S = 120.0
RACE = 1.0
"""So many requests may begin between the look at what runs and the fault."""
LOST = (ClientOutcome.BROKEN, ClientOutcome.TIMEOUT, ClientOutcome.REFUSED)


class DrillRunner:
    """``say`` gets a line of what happens."""

    def __init__(self, deployment: Deployment, pace: Pace, seed: int, say: Callable[[str], None]) -> None:
        self._deployment = deployment
        self._pace = pace
        self._seed = seed
        self._say = say

    async def run(self, drill: Drill) -> Findings:
        """Never raises for what goes wrong with the service: that stands in the findings."""
        findings = Findings(
            drill=drill.name,
            question=drill.question,
            rows=drill.rows,
            fault=drill.fault,
            deployment=self._deployment.name,
            is_own=self._deployment.is_own,
            began=datetime.now().astimezone().isoformat(timespec="seconds"),
            rate_per_s=self._pace.rate_per_s,
        )
        findings.skipped = self.why_not(drill)
        if not findings.skipped:
            try:
                await self._deployment.prepare(drill.setup)
            except (TidegateError, OSError) as error:
                findings.aborted = f"the deployment could not be made ready: {error}"
            else:
                await self._played(drill, findings)
            findings.verdicts = [bar.judge(findings) for bar in drill.bars]
        return findings

    def why_not(self, drill: Drill) -> str:
        """Why it can't run here; "": it can."""
        deployment = self._deployment
        if drill.needs_own and not deployment.is_own:
            return drill.needs_own
        if drill.needs_peak and self._pace.peak_per_s is None:
            return "it sends multiples of the peak rate, and that is not known: give peak_per_s in the drill file"
        replicas = (deployment.is_own and drill.setup.replicas) or len(deployment.replicas)
        if replicas < drill.least_replicas:
            return f"it needs {drill.least_replicas} replicas, and there are {replicas}"
        most = replicas if deployment.is_own else deployment.most_broken
        if drill.broken_replicas > most:
            return f"it breaks {drill.broken_replicas} replicas at once, and at most {most} may be broken"
        reasons = [f"{fault}: {why}" for fault in drill.faults if (why := self._why_not_by(fault, drill))]
        return "; ".join(reasons)

    def _why_not_by(self, fault: str, drill: Drill) -> str:
        able = self._deployment.breakable(fault)
        is_short = not self._deployment.is_own and 0 < len(able) < drill.broken_replicas
        return f"only {', '.join(able)} can be broken so" if is_short else self._deployment.why_not(fault)

    async def _played(self, drill: Drill, findings: Findings) -> None:
        before = self._deployment.duplicated()
        zero = time.monotonic()
        scene = Scene(self._deployment, self._pace, findings, zero)
        load = SteadyLoad(
            name=f"{drill.name}-{time.time_ns() % 10**9}", rate_per_s=self._pace.rate_per_s, pace=self._pace
        )
        sender = Sender(self._deployment.target, zero, grace_s=self._pace.patience_s)
        sending = asyncio.create_task(
            sender.open_loop(load.asks(self._seed), zero, float("inf"), scene.samples.append, "steady")
        )
        watching = asyncio.create_task(scene.watch(VIEW_EVERY_S))
        try:
            await self._guarded(drill, scene)
            sender.stop()
            await sending
        finally:
            watching.cancel()
            # Whatever ends us: a cancellation is a signal, and must not leave anything broken.
            await to_its_end(self._put_back(scene, sender, (sending, watching)))
        await self._count(scene, before)

    async def _guarded(self, drill: Drill, scene: Scene) -> None:
        """Play it, and end it when it hurts more than it may."""
        share = min(drill.expected_error_share, self._deployment.most_error_share)
        rule = AbortRule(error_share=share)
        playing = asyncio.create_task(drill.play(scene))
        try:
            while not playing.done():
                await asyncio.wait((playing,), timeout=LOOK_EVERY_S)
                scene.findings.aborted = rule.why(scene.samples, scene.now())
                if scene.findings.aborted and not playing.done():
                    self._say(f"{drill.name}: ended: {scene.findings.aborted}")
                    return
            playing.result()
        except Exception as error:  # noqa: BLE001 - a mistake in one drill is told, and the others are played
            scene.findings.aborted = f"{type(error).__name__}: {error}"
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    async def _put_back(self, scene: Scene, sender: Sender, tasks: tuple[asyncio.Task[None], ...]) -> None:
        await scene.restore()
        await sender.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for line in scene.findings.left_broken:
            self._say(f"NOT PUT BACK: {line}")

    async def _count(self, scene: Scene, duplicated_before: int | None) -> None:
        findings = scene.findings
        if findings.ended_at is None:
            scene.mark_ended()
        findings.notes += self._deployment.take_remarks()
        fill(findings, scene.samples)
        charged = charged_twice(await self._deployment.rows(), f"{findings.drill}-")
        duplicated = self._deployment.duplicated()
        if duplicated is not None and duplicated_before is not None:
            findings.duplicated = duplicated - duplicated_before + (charged or 0)
        else:
            findings.duplicated = charged


def fill(findings: Findings, samples: list[Sample]) -> None:
    """What is told by what clients saw."""
    sent = [each for each in samples if each.outcome is not ClientOutcome.UNSENT]
    ended_at = findings.ended_at or 0.0
    broken_at = ended_at if findings.broken_at is None else findings.broken_at
    healed_at = ended_at if findings.healed_at is None else findings.healed_at
    baseline_s = findings.baseline_p95_s
    # What was under way when it broke counts as hit by it.
    hit = [each for each in sent if each.ended_at >= broken_at]
    findings.due = len(hit)
    findings.outcomes = dict(Counter(each.outcome.value for each in hit))
    findings.codes = dict(Counter(each.code for each in hit if each.code and not each.is_answered))
    findings.lost = sum(each.outcome in LOST for each in hit)
    running = findings.figures.get("running")
    if running is not None and "lost_beyond" not in findings.figures:
        findings.figures["lost_beyond"] = max(0.0, findings.lost - running - RACE)
    findings.late = recovery.late_count(hit, baseline_s)
    findings.longest_s = max((each.e2e_s for each in hit), default=0.0)
    during = recovery.between(sent, broken_at, healed_at)
    findings.by_replica = dict(Counter(each.replica for each in during if each.is_answered and each.replica))
    findings.detected_s = recovery.detected_s(sent, broken_at, healed_at)
    last_due = max((each.due_at for each in sent), default=0.0)
    findings.recovered_s = recovery.recovered_s(sent, healed_at, min(last_due, ended_at), baseline_s)
    findings.moments = recovery.moments(sent, last_due)


def charged_twice(rows: Sequence[Mapping[str, Any]], prefix: str) -> int | None:
    """Request ids of the drill that the gateway answered and charged more than once. None: it shows no requests."""
    charged = Counter(
        str(row["request_id"])
        for row in rows
        if row.get("outcome") == "ok" and not row.get("reuse") and str(row["request_id"]).startswith(prefix)
    )
    return sum(count > 1 for count in charged.values()) if rows else None
