"""An engine's figures freeze, fail and fall silent while it serves: the gateway goes on by its own accounts (R6)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tidegate.load.drills.bar import Bar, figure, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_scene import own_of
from tidegate.load.drills.recovery import between
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.stale_fault import STALE
from tidegate.load.drills.stand_in import paced
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample

FAILING = STALE[1].name
MORE_PER_S = 6.0
LEAST_S, MOST_S = 6.0, 8.0
"""Of each way. Beyond 10 s of silence on its health page the gateway takes an engine for dead."""


async def play(scene: Scene) -> None:
    victim = scene.deployment.replicas[0]
    await scene.baseline()
    spans: list[tuple[str, float, float]] = []
    figures: dict[str, float | None] = {}
    for fault in STALE:
        began, log_before = scene.now(), own_of(scene).gateway.log
        await scene.break_(fault.name, victim)
        span_s = min(MOST_S, max(LEAST_S, scene.pace.fault_s / len(STALE)))
        await scene.send(more_load(scene).asks(8), span_s)
        spans.append((fault.name, began, scene.now()))
        figures[f"{fault.name}: lines of log about it"] = told(own_of(scene).gateway.log[len(log_before) :], victim)
        await scene.deployment.restore(fault.name, victim)
    await scene.restore()
    await scene.aftermath()
    for name, began, ended in spans:
        figures[f"{name}: answers of that replica"] = answers_of(between(scene.samples, began, ended), victim)
    figures["fewest answers"] = min(figures[f"{name}: answers of that replica"] or 0.0 for name, *_ in spans)
    scene.findings.figures |= figures


def more_load(scene: Scene) -> SteadyLoad:
    """Enough beside the usual load that one replica alone is not always the better choice."""
    return SteadyLoad(name=f"more-{time.time_ns() % 10**9}", rate_per_s=MORE_PER_S, pace=scene.pace)


def answers_of(samples: Sequence[Sample], replica: str) -> int:
    return sum(each.is_answered and each.replica == replica for each in samples)


def told(lines: str, replica: str) -> int:
    """Lines of the gateway's log that name the replica."""
    return sum(replica in line for line in lines.splitlines())


DRILL = Drill(
    name="stale-metrics",
    rows=("S2-32",),
    question="An engine's figures freeze, fail or fall silent while it serves: is it still used?",
    fault="one engine's GET pages give old answers, then 503 but for its health, then none; its answers are as ever",
    restores="its pages are passed on again",
    faults=tuple(fault.name for fault in STALE),
    setup=Setup(engine=paced),
    bars=(
        Bar(
            name="answers of that replica in the worst of the three",
            row="S2-32",
            figure=figure("fewest answers"),
            least=1,
            hint="old figures took it out of service: look at tidegate_replica_ready and tidegate_slots_foreign",
        ),
        Bar(name="errors", row="S2-32", figure=lambda findings: float(findings.errors), most=0),
        Bar(
            name="lines of log about figures that fail",
            row="S2-32",
            figure=figure(f"{FAILING}: lines of log about it"),
            least=1,
            hint="the gateway is to say that it goes on without them",
        ),
        recovered(5.0),
    ),
    play=play,
    needs_own="it stands between the gateway and an engine's pages",
)
