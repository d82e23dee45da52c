"""A replica moves while it is used: drained, stopped, and replaced at another address (SPEC S1-72).

Rehearsed in production: one replica at a time, ended by itself when clients notice, undone by taking the old one back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from tidegate.errors import EngineError
from tidegate.load.ask import Ask
from tidegate.load.drills.bar import Bar, figure, not_duplicated, recovered
from tidegate.load.drills.drain_fault import DRAIN
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.own_scene import order, own_of
from tidegate.load.drills.recovery import between
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.stand_in import paced
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.drills.until import until

EMPTY_WITHIN_S = 60.0
READY_WITHIN_S = 30.0
NEW = "moved"
MORE_PER_S = 6.0


async def play(scene: Scene) -> None:
    own = own_of(scene)
    moving, *staying = own.replicas
    await scene.baseline()
    began = time.monotonic()
    await scene.break_(DRAIN, moving)
    await until(lambda: _is_empty(own, moving), EMPTY_WITHIN_S, f"{moving} still answers requests")
    emptied_at = time.monotonic()
    await own.add_engine(NEW)
    scene.on_restore(f"the gateway's list of replicas, without {NEW}", lambda: _undo(own, moving, staying))
    await own.reload([NEW, *staying])
    await until(lambda: _is_ready(own, NEW), READY_WITHIN_S, f"{NEW} is not ready")
    await own.engines[moving].close()
    moved_at = time.monotonic()
    scene.findings.figures |= {"emptied_s": emptied_at - began, "moved_s": moved_at - began}
    used_from = scene.now()
    await scene.send(_more(scene), scene.pace.fault_s)
    scene.findings.figures["new_answers"] = sum(
        each.replica == NEW and each.is_answered for each in between(scene.samples, used_from, scene.now())
    )
    await scene.restore()
    await scene.aftermath()


def _more(scene: Scene) -> Iterator[Ask]:
    """Enough beside the steady load that one replica alone is not always the better choice."""
    return SteadyLoad(name=f"more-{time.time_ns() % 10**9}", rate_per_s=MORE_PER_S, pace=scene.pace).asks(7)


async def _is_empty(own: OwnDeployment, replica: str) -> bool:
    found = await _replica(own, replica)
    return not (found["in_flight"] or found["aborting"])


async def _is_ready(own: OwnDeployment, replica: str) -> bool:
    return bool((await _replica(own, replica)).get("ready"))


async def _replica(own: OwnDeployment, name: str) -> dict[str, object]:
    view = await own.gateway.view()
    if view is None:
        raise EngineError("the gateway's admin port does not answer")
    found: dict[str, object] = view["replicas"].get(name, {})
    return found


async def _undo(own: OwnDeployment, moving: str, staying: list[str]) -> None:
    """The old one takes requests again before the new one stops to, and what the new one has ends before it goes."""
    await own.engines[moving].start()
    await own.reload([moving, NEW, *staying])
    await until(lambda: _is_ready(own, moving), READY_WITHIN_S, f"{moving} is not ready")
    await order(own, "POST", f"/admin/drain?replica={NEW}&on=true")
    await until(lambda: _is_empty(own, NEW), EMPTY_WITHIN_S, f"{NEW} still answers requests")
    await own.reload([moving, *staying])
    await own.remove_engine(NEW)


DRILL = Drill(
    name="migrate",
    rows=("S1-72", "S1-63"),
    question="A replica moves to another host while it is used: do its clients notice?",
    fault="one replica is drained, replaced by another at a new address, and stopped",
    restores="the old replica is started again and admitted, and the new one removed",
    faults=(DRAIN,),
    setup=Setup(engine=paced),
    bars=(
        Bar(
            name="requests that failed or were lost",
            row="S1-72",
            figure=lambda findings: float(findings.errors),
            most=0,
            hint="a drained replica finishes what it has: was it stopped before it was empty?",
        ),
        Bar(name="requests shed", row="S1-72", figure=lambda findings: findings.outcomes.get("shed", 0), most=0),
        Bar(
            name="moved, from the order to the old one's end",
            row="S1-72",
            figure=figure("moved_s"),
            most=30.0,
            unit="s",
            hint="the longest answer must end first, then the new replica load its model",
        ),
        Bar(
            name="answers of the new replica",
            row="S1-72",
            figure=figure("new_answers"),
            least=1,
            hint="it was admitted and got nothing: look at its breaker, slow start and slots in tidegate explain",
        ),
        recovered(5.0),
        not_duplicated(),
    ),
    play=play,
    needs_own="only your deployment knows how to start a replica elsewhere: give it as a fault, and play node-lost",
    expected_error_share=0.05,
)
