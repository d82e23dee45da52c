"""The disk is full: does the gateway, which writes nothing but its log, go on serving?"""

from __future__ import annotations

from tidegate.load.drills.bar import Bar, figure, recovered
from tidegate.load.drills.disk_fault import DISK_FULL
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_scene import own_of
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.stand_in import paced


async def play(scene: Scene) -> None:
    gateway = own_of(scene).gateway
    await scene.baseline()
    lives, data_pid = gateway.lives, gateway.data_pid()
    await scene.break_(DISK_FULL)
    size_at_fault = len(gateway.log)
    await scene.fault_time()
    size_after_fault = len(gateway.log)
    await scene.restore()
    await scene.aftermath()
    scene.findings.figures |= {
        "restarts": gateway.lives - lives,
        "data_process_changed": int(gateway.data_pid() != data_pid),
        "written_in_fault_bytes": size_after_fault - size_at_fault,
        "written_after_bytes": len(gateway.log) - size_after_fault,
    }


DRILL = Drill(
    name=DISK_FULL,
    rows=("S2-32",),
    question="The disk is full: does the gateway go on serving, and go on with its log when there is room again?",
    fault="no file of the gateway's processes may grow: each write to its log fails, with one log line per request",
    restores="the files may grow again",
    faults=(DISK_FULL,),
    setup=Setup(engine=paced, config={"server": {"log_requests": True}}),
    bars=(
        Bar(name="errors", row="S2-32", figure=lambda findings: float(findings.errors), most=0, hint="see the log"),
        Bar(name="restarts of the gateway", row="S2-32", figure=figure("restarts"), most=0, hint="see the log's end"),
        Bar(name="ends of its data process", row="S2-32", figure=figure("data_process_changed"), most=0),
        Bar(
            name="bytes of log written meanwhile",
            row="S2-32",
            figure=figure("written_in_fault_bytes"),
            most=0,
            hint="the fault did not reach the process that writes the log: nothing was tried",
        ),
        Bar(
            name="bytes of log written afterwards",
            row="S2-32",
            figure=figure("written_after_bytes"),
            least=1,
            hint="the log did not come back",
        ),
        recovered(5.0),
    ),
    play=play,
    needs_own="it limits the files of the gateway's processes",
    broken_replicas=0,
    least_replicas=1,
)
