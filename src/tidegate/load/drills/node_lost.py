"""A replica and its host are gone; the others take over (SPEC S1-65)."""

from __future__ import annotations

import time

from tidegate.load.drills.bar import Bar, detected, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.recovery import between
from tidegate.load.drills.replica_faults import LOST
from tidegate.load.drills.restart_bars import restart_bars
from tidegate.load.drills.restart_inspection import RestartInspection, keep
from tidegate.load.drills.scene import Scene

DETECTED_S = 5.0
RECOVERED_S = 10.0


async def play(scene: Scene) -> None:
    (victim,) = scene.victims(LOST)
    inspection = RestartInspection(scene.deployment, victim)
    await inspection.before()
    await scene.baseline()
    await scene.note_running(victim)
    await scene.break_(LOST, victim)
    await scene.fault_time()
    began = time.monotonic()
    await scene.restore()
    keep(scene.findings, await inspection.after(began))
    await scene.aftermath()
    _count(scene, victim)


def _count(scene: Scene, victim: str) -> None:
    """Of requests that were due after the loss: were they answered, and by whom?"""
    findings = scene.findings
    if findings.broken_at is None or findings.healed_at is None:
        return
    during = between(scene.samples, findings.broken_at, findings.healed_at)
    taken_over = [each for each in during if each.is_answered and each.replica != victim]
    findings.figures["taken_over_share"] = len(taken_over) / len(during) if during else None


DRILL = Drill(
    name="node-lost",
    rows=("S1-65", "S1-64", "S2-32"),
    question="A node is gone with its replica: does a standby take over, and how long is the interruption?",
    fault="one replica is killed, its port closed, and nobody starts it again",
    restores="it is started again at its old address",
    faults=(LOST,),
    bars=(
        detected(DETECTED_S),
        Bar(
            name="lost beyond what ran on the node",
            row="S1-65",
            figure=figure("lost_beyond"),
            needs_inside=True,
            most=0,
            hint="without a first byte they are to be sent elsewhere: look at tail.retries and its allowance",
        ),
        Bar(
            name="taken over by the others",
            row="S1-65",
            figure=figure("taken_over_share"),
            least=0.95,
            hint="have the others the capacity (N+1)? look at sheds and at the queue",
        ),
        recovered(RECOVERED_S),
        not_duplicated(),
        *restart_bars(back_s=30.0, first_request_s=20.0),
    ),
    play=play,
)
