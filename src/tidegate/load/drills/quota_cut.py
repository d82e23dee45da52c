"""All replicas but one are taken away: is the online class still served, and what gives way first (SPEC S1-71)?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.bar import Bar, figure, recovered
from tidegate.load.drills.drain_fault import DRAIN
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.recovery import between
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample

BATCH = "batch"
BATCH_FACTOR = 3.0
"""Of the peak that all replicas can do."""
DEADLINE_S = 8.0
"""Of each batch request; class ``batch`` would wait for a minute, and a drill does not."""
STAYS_S = 5.0
"""Its client stays so much longer, so that it is the gateway that ends it."""


async def play(scene: Scene) -> None:
    await scene.baseline()
    for replica in scene.deployment.replicas[1:]:
        await scene.break_(DRAIN, replica)
    began = scene.now()
    batch = await scene.send(_batch(scene), scene.pace.fault_s)
    await scene.restore()
    await scene.aftermath()
    during = between(scene.samples, began, began + scene.pace.fault_s)
    scene.findings.figures |= shares([each for each in during if each.label != BATCH], batch)


def _batch(scene: Scene) -> list[Ask]:
    """What may wait, says so, and names its end."""
    rate = BATCH_FACTOR * (scene.pace.peak_per_s or scene.pace.rate_per_s)
    pace = replace(scene.pace, patience_s=DEADLINE_S + STAYS_S)
    name = f"{BATCH}-{time.time_ns() % 10**9}"
    load = SteadyLoad(name=name, rate_per_s=rate, pace=pace, label=BATCH, count=int(rate * pace.fault_s))
    headers = (("x-tidegate-class", BATCH), ("x-tidegate-deadline-ms", str(int(DEADLINE_S * 1000))))
    return [replace(ask, headers=(*ask.headers, *headers)) for ask in load.asks(5)]


def shares(online: Sequence[Sample], batch: Sequence[Sample]) -> dict[str, float | None]:
    """Of each class: how many were answered at once or later, and how many were refused for load."""
    return {
        "online": len(online),
        "online_answered_share": share(online, ClientOutcome.OK, ClientOutcome.DEGRADED),
        "online_shed_share": share(online, ClientOutcome.SHED),
        "batch": len(batch),
        "batch_shed": sum(each.outcome is ClientOutcome.SHED for each in batch),
        "batch_answered_share": share(batch, ClientOutcome.OK, ClientOutcome.DEGRADED),
        "batch_shed_share": share(batch, ClientOutcome.SHED),
        "batch_ahead": ahead(batch, online),
    }


def share(samples: Sequence[Sample], *outcomes: ClientOutcome) -> float | None:
    """None of nothing."""
    return sum(each.outcome in outcomes for each in samples) / len(samples) if samples else None


def ahead(batch: Sequence[Sample], online: Sequence[Sample]) -> float | None:
    """By how much more of the batch requests were answered."""
    batch_share, online_share = (share(group, ClientOutcome.OK, ClientOutcome.DEGRADED) for group in (batch, online))
    return None if batch_share is None or online_share is None else max(0.0, batch_share - online_share)


DRILL = Drill(
    name="quota-cut",
    rows=("S1-71", "S2-32"),
    question="The replicas are cut to the minimum: is the online class served, and does batch work give way first?",
    fault="all replicas but one get no new requests, while batch work comes at three times the peak",
    restores="the replicas are given back",
    faults=(DRAIN,),
    bars=(
        Bar(
            name="share of online requests that were answered",
            row="S1-71",
            figure=figure("online_answered_share"),
            least=0.99,
            hint="is one replica enough for the online load alone? capacity: tidegate load knee",
        ),
        Bar(
            name="share of online requests that were shed",
            row="S1-71",
            figure=figure("online_shed_share"),
            most=0.0,
            hint="look at shaping.classes: weights, and batch's max_share",
        ),
        Bar(
            name="share by which more batch requests were answered than online ones",
            row="S1-71",
            figure=figure("batch_ahead"),
            most=0.0,
            hint="batch work did not give way: did it come with its class?",
        ),
        Bar(
            name="batch requests that gave way (fewer prove nothing)",
            row="S1-71",
            figure=figure("batch_shed"),
            least=1,
            hint="the replica that was left could do all of it: is the measured peak right?",
        ),
        recovered(10.0),
    ),
    play=play,
    needs_peak=True,
    broken_replicas=1,
)
