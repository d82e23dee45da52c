"""Several replicas restart at once: does the balancer push all traffic on one (SPEC S1-70)?"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.load.drills.bar import Bar, detected, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_deployment import PATIENT
from tidegate.load.drills.replica_faults import RESTART
from tidegate.load.drills.restart_bars import restart_bars
from tidegate.load.drills.restart_inspection import RestartInspection, keep
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample

REPLICAS, RESTARTED = 3, 2
WAVE_S, WAVE_WORK_S, MOST_WAVE = 0.5, 2.0, 24
BUSIEST_SHARE = 0.67
"""Of a wave once all are back; an even share is a third, and of so few requests one replica may get some more."""


async def play(scene: Scene) -> None:
    victims = scene.victims(RESTART, RESTARTED)
    inspections = [RestartInspection(scene.deployment, victim) for victim in victims]
    await asyncio.gather(*(each.before() for each in inspections))
    await scene.baseline()
    await scene.note_running(*victims)
    for victim in victims:
        await scene.break_(RESTART, victim)
    ended_at = time.monotonic()
    await _wave(scene, "alone")
    for check in await asyncio.gather(*(each.after(ended_at) for each in inspections)):
        keep(scene.findings, check)
    await scene.restore()
    await scene.aftermath()
    scene.mark_ended()
    back = await _wave(scene, "back")
    figures, broken_at = scene.findings.figures, scene.findings.broken_at or 0.0
    figures["busiest_share"] = busiest_share(each.replica for each in back if each.is_answered)
    figures["over_limit"] = most_over_limit(view for at, view in scene.views if at >= broken_at)


async def _wave(scene: Scene, name: str) -> list[Sample]:
    """Requests all at once: only what runs beside each other has to be shared out."""
    prefix = f"{scene.findings.drill}-{name}-{scene.findings.began}"
    count = wave_size(scene.pace.peak_per_s, len(scene.deployment.replicas))
    load = SteadyLoad(name=prefix, rate_per_s=count / WAVE_S, pace=scene.pace, label=f"wave {name}", count=count)
    return await scene.send(load.asks(1), WAVE_S)


def wave_size(peak_per_s: float | None, replicas: int) -> int:
    """Two seconds of what the service can do, and at least two for each replica."""
    return max(2 * replicas, min(MOST_WAVE, round(WAVE_WORK_S * (peak_per_s or 0.0))))


def busiest_share(replicas: Iterable[str]) -> float | None:
    """Of the answers, what the replica with the most of them wrote."""
    counts = Counter(each for each in replicas if each)
    return max(counts.values()) / counts.total() if counts else None


def most_over_limit(views: Iterable[Mapping[str, Any]]) -> float | None:
    """How many requests a replica ever ran above its own limit. None: nobody looked."""
    over = [
        max(0.0, replica["in_flight"] - max(1.0, replica["limit"]))
        for view in views
        for replica in view["replicas"].values()
        if replica["limit"] is not None
    ]
    return max(over, default=None)


DRILL = Drill(
    name="several-restarts",
    rows=("S1-70", "S1-64"),
    question="Several replicas restart at once: does the balancer push all traffic on one?",
    fault=f"{RESTARTED} of {REPLICAS} replicas are killed in the same moment; their supervisors start them again",
    restores="by itself; the drill waits until all serve",
    faults=(RESTART,),
    bars=(
        Bar(
            name="requests on one replica above its limit",
            row="S1-70",
            figure=figure("over_limit"),
            needs_inside=True,
            most=0,
            hint="the survivor must queue or refuse, not take all: look at limits and at balance",
        ),
        Bar(
            name="share of the busiest once all are back",
            row="S1-70",
            figure=figure("busiest_share"),
            needs_inside=True,
            most=BUSIEST_SHARE,
            hint="look at breaker cooldowns and at balance: a replica that is back gets nothing",
        ),
        Bar(
            name="lost beyond what ran on them",
            row="S1-70",
            figure=figure("lost_beyond"),
            needs_inside=True,
            most=0,
            hint="without a first byte they are to be sent elsewhere: look at tail.retries and its allowance",
        ),
        detected(5.0),
        recovered(10.0),
        not_duplicated(),
        *restart_bars(back_s=40.0, first_request_s=20.0),
    ),
    play=play,
    setup=Setup(replicas=REPLICAS, config={"tail": {"timeouts": PATIENT}}),
    broken_replicas=RESTARTED,
    # Until the breakers have learned of two at once, a request and its retry may both meet one that is gone.
    expected_error_share=0.95,
    least_replicas=REPLICAS,
)
