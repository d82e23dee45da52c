"""The model process is ended for memory: does it come back by itself, and how warm (SPEC S1-66)?"""

from __future__ import annotations

import time

from tidegate.load.drills.bar import Bar, detected, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.memory_fault import MEMORY_CAP
from tidegate.load.drills.restart_bars import restart_bars
from tidegate.load.drills.restart_inspection import RestartInspection, keep
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup

DETECTED_S = 5.0
RECOVERED_S = 10.0


async def play(scene: Scene) -> None:
    (victim,) = scene.victims(MEMORY_CAP)
    inspection = RestartInspection(scene.deployment, victim)
    await inspection.before()
    await scene.baseline()
    await scene.note_running(victim)
    await scene.break_(MEMORY_CAP, victim)
    # Filling the memory takes a moment, and only its end is the fault.
    scene.findings.broken_at = scene.now()
    keep(scene.findings, await inspection.after(time.monotonic()))
    await scene.restore()
    await scene.aftermath()


DRILL = Drill(
    name="oom",
    rows=("S1-66", "S1-64", "S1-44"),
    question="The model process runs out of memory: does it restart by itself, and how long is the first request?",
    fault="another process fills the memory cap of one engine, and the kernel's OOM killer ends the engine",
    restores="the supervisor has started it again in the same control group; the cap is lifted",
    faults=(MEMORY_CAP,),
    bars=(
        detected(DETECTED_S),
        Bar(
            name="lost beyond what ran on it",
            row="S1-66",
            figure=figure("lost_beyond"),
            needs_inside=True,
            most=0,
            hint="without a first byte they are to be sent elsewhere: look at tail.retries and its allowance",
        ),
        recovered(RECOVERED_S),
        not_duplicated(),
        *restart_bars(back_s=30.0, first_request_s=20.0),
    ),
    play=play,
    setup=Setup(is_capped=True),
)
