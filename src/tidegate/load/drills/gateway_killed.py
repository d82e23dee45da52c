"""The gateway's processes are killed with ``kill -9``: what is lost, what is left behind, how soon is it back?"""

from __future__ import annotations

import os

from tidegate.load.drills.bar import Bar, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.gateway_faults import DATA_KILLED, GATEWAY_KILLED
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.own_scene import own_of
from tidegate.load.drills.recovery import is_failed
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.until import until
from tidegate.load.sample import Sample

DATA_BACK_S, BACK_S = 8.0, 20.0
"""An interpreter and its imports take about one second, and the parent another; the rest is for a busy machine."""
GONE_WITHIN_S = 10.0
SEEN_AGAIN_S = 0.5
"""A request may have been sent into the socket of a process that was just ending."""


async def play(scene: Scene) -> None:
    own = own_of(scene)
    engines = {name: engine.lives for name, engine in own.engines.items()}
    await scene.baseline()
    data = await _killed(scene, own, DATA_KILLED)
    await scene.hold(scene.pace.fault_s / 2)
    whole = await _killed(scene, own, GATEWAY_KILLED)
    await scene.restore()
    figures = scene.findings.figures
    figures["data_back_s"], figures["back_s"] = data[1] - data[0], whole[1] - whole[0]
    await scene.aftermath()
    figures["lost_beyond"] = float(len(lost_beyond(scene.samples, (data, whole))))
    figures["engines_restarted"] = float(sum(own.engines[name].lives - lives for name, lives in engines.items()))
    scene.findings.notes.append(
        "what the policies had learned outlives the data process (its parent keeps it), and not the whole gateway"
    )


async def _killed(scene: Scene, own: OwnDeployment, fault: str) -> tuple[float, float]:
    """When it was killed, and when it took requests again. Counts what it left behind."""
    old = [pid for pid in (own.gateway.pid, own.gateway.data_pid()) if pid is not None]
    gone = old[1:] if fault == DATA_KILLED else old
    began = scene.now()
    await scene.break_(fault)

    async def is_another() -> bool:
        pid = own.gateway.data_pid()
        return pid is not None and pid not in old and await own.gateway.is_ready()

    await until(is_another, scene.pace.patience_s, "the gateway is not back")
    back = scene.now()
    try:
        await until(lambda: _none_of(gone), GONE_WITHIN_S, "processes of the killed gateway still run")
        left = 0
    finally:
        left = sum(map(_runs, gone))
        scene.findings.figures["left_behind"] = (scene.findings.figures.get("left_behind") or 0.0) + left
    return began, back


async def _none_of(pids: list[int]) -> bool:
    return not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def lost_beyond(samples: list[Sample], outages: tuple[tuple[float, float], ...]) -> list[Sample]:
    """Failures that no outage explains: neither under way when it began nor due before its end."""
    return [
        each
        for each in samples
        if is_failed(each)
        and not any(each.due_at <= back + SEEN_AGAIN_S and each.ended_at >= killed for killed, back in outages)
    ]


DRILL = Drill(
    name="gateway-killed",
    rows=("S2-32", "S1-52"),
    question="The gateway is killed: which requests are lost, how soon is it back, and are its engines left alone?",
    fault="kill -9 of its data process, and later of the gateway",
    restores="its parent starts the data process again, and what keeps services running starts the gateway",
    faults=(DATA_KILLED, GATEWAY_KILLED),
    bars=(
        Bar(
            name="data process takes requests again",
            row="S1-52",
            figure=figure("data_back_s"),
            most=DATA_BACK_S,
            unit="s after it was killed",
            hint="look at the start of the data process in the gateway's log",
        ),
        Bar(
            name="gateway takes requests again",
            row="S1-52",
            figure=figure("back_s"),
            most=BACK_S,
            unit="s after it was killed",
            hint="look at the pause of what restarts it (systemd: RestartSec) and at its start log",
        ),
        Bar(
            name="lost that were neither under way nor sent while it was away",
            row="S2-32",
            figure=figure("lost_beyond"),
            most=0,
            hint="look at those requests in the records",
        ),
        Bar(
            name="engines restarted by it",
            row="S2-32",
            figure=figure("engines_restarted"),
            most=0,
            hint="engines must outlive the gateway that they do not belong to",
        ),
        Bar(
            name="processes left behind",
            row="S2-32",
            figure=figure("left_behind"),
            most=0,
            hint="a data process must end with its parent: two would answer at one port",
        ),
        recovered(10.0),
        not_duplicated(),
    ),
    play=play,
    broken_replicas=0,
    expected_error_share=1.0,
    needs_own="it kills the gateway's processes by their ids, which it knows of a deployment of its own only",
    least_replicas=1,
)
