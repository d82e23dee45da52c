"""The gateway's wall clock jumps an hour ahead and an hour back: are timeouts, quotas and Retry-After disturbed?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.bar import Bar, figure, recovered
from tidegate.load.drills.clock_fault import CLOCK, HOUR_S, clock_env, library, turn
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_deployment import PHASE
from tidegate.load.drills.own_scene import change, own_of
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.stand_in import StandIn, paced
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.testing.faults import Fault

LIMITED, STUCK = "limited", "stuck"
PER_MINUTE = 6
MOST_RETRY_AFTER_S = 72.0
"""A minute, for a bucket of one minute's worth, times 1.2 (docs/policies/quota.md)."""
MARGIN_S = 3.0


async def play(scene: Scene) -> None:
    for name in (LIMITED, STUCK):
        await _add(scene, name)
    await scene.baseline()
    began = scene.now()
    limited, stuck = await _ask(scene, LIMITED, 0.0), list[Sample]()
    await scene.break_(CLOCK)
    for name, offset_s in (("ahead", HOUR_S), ("back", -HOUR_S)):
        await turn(own_of(scene).folder, offset_s)
        stuck += await _ask(scene, STUCK, 0.0)
        limited += await _ask(scene, LIMITED, scene.pace.fault_s / 2)
        off_s = clock_off_s(await scene.deployment.rows(), time.time())
        scene.findings.figures[f"clock_off_{name}_s"] = off_s
    scene.findings.figures |= figures_of(limited, stuck, scene.now() - began, await scene.deployment.rows())
    await scene.restore()
    await scene.aftermath()


async def _add(scene: Scene, name: str) -> None:
    """An upstream of its own: one that is limited, and one that hangs."""
    engine = StandIn(name, model=name, kind="openai")
    scene.on_restore(f"the process of {name}", engine.close)
    await engine.start()
    limits = {"limits": {"requests_per_minute": PER_MINUTE}} if name == LIMITED else {}
    replica = {"name": name, "url": engine.url, "sequences": 8}
    await change(scene, {f"upstreams.{name}": {"replicas": [replica], **limits}})
    if name == STUCK:
        await engine.fail(Fault.HANG)


async def _ask(scene: Scene, model: str, duration_s: float) -> list[Sample]:
    """Streams of that model, two a second, at least one; returns when they have ended."""
    found: list[Sample] = []
    load = SteadyLoad(name=f"{model}-{time.time_ns() % 10**9}", rate_per_s=2.0, pace=scene.pace)
    asks = (replace(ask, body=ask.body.replace(b'"stream": false', b'"stream": true')) for ask in load.asks(4))
    sender = Sender(replace(scene.deployment.target, model=model), time.monotonic() - scene.now())
    try:
        await sender.open_loop(asks, time.monotonic(), max(0.1, duration_s), found.append, model)
    finally:
        await sender.close()
    return found


def figures_of(
    limited: Sequence[Sample], stuck: Sequence[Sample], elapsed_s: float, rows: Iterable[Mapping[str, Any]]
) -> dict[str, float | None]:
    """``elapsed_s``: since the first of the limited requests; so many may pass as it gives in that time."""
    allowed = PER_MINUTE * (1 + elapsed_s / 60)
    passed = sum(each.is_answered for each in limited)
    refused = [row["retry_after_s"] for row in rows if row.get("upstream") == LIMITED and row.get("retry_after_s")]
    waits = [each.e2e_s for each in stuck]
    return {
        "passed_limit": passed,
        "beyond_limit": max(0.0, passed - allowed),
        "refused": sum(each.outcome is ClientOutcome.SHED for each in limited),
        "longest_retry_after_s": max(refused, default=None),
        "stuck_shortest_s": min(waits, default=None),
        "stuck_longest_s": max(waits, default=None),
    }


def clock_off_s(rows: Sequence[Mapping[str, Any]], unix_s: float) -> float | None:
    """How far the gateway's clock is from ours, by the time of the last request; None: it shows none."""
    return max(row["arrived_unix_s"] for row in rows) - unix_s if rows else None


DRILL = Drill(
    name=CLOCK,
    rows=("S2-32",),
    question="The wall clock jumps an hour ahead and an hour back: are timeouts, quotas and Retry-After disturbed?",
    fault="the gateway's processes are told another time of day; their monotonic clock goes on as it does",
    restores="they are told the right time again",
    faults=(CLOCK,),
    setup=Setup(engine=paced, env=clock_env(library())),
    bars=(
        Bar(
            name="the clock was ahead by",
            row="S2-32",
            figure=figure("clock_off_ahead_s"),
            least=HOUR_S - 120,
            unit="s",
            hint="the library did not reach the gateway's processes: nothing was tried",
        ),
        Bar(
            name="and then behind by",
            row="S2-32",
            figure=lambda findings: -(findings.figures.get("clock_off_back_s") or 0.0),
            least=HOUR_S - 120,
            unit="s",
            hint="the library did not reach the gateway's processes: nothing was tried",
        ),
        Bar(name="errors", row="S2-32", figure=lambda findings: float(findings.errors), most=0),
        Bar(
            name="a hanging engine's first-byte timeout came after",
            row="S2-32",
            figure=figure("stuck_shortest_s"),
            least=PHASE["floor_s"],
            unit="s",
            hint="a timer follows the wall clock",
        ),
        Bar(
            name="and at the latest after",
            row="S2-32",
            figure=figure("stuck_longest_s"),
            most=PHASE["default_s"] + MARGIN_S,
            unit="s",
            hint="a timer follows the wall clock",
        ),
        Bar(
            name="requests beyond the minute's quota",
            row="S2-32",
            figure=figure("beyond_limit"),
            most=1,
            hint="the quota's bucket was filled by the jump",
        ),
        Bar(
            name="longest Retry-After",
            row="S2-32",
            figure=figure("longest_retry_after_s"),
            most=MOST_RETRY_AFTER_S,
            unit="s",
            hint="it follows the wall clock",
        ),
        recovered(5.0),
    ),
    play=play,
    needs_own="it turns the clock of the gateway's processes only where it starts them",
    broken_replicas=0,
    least_replicas=1,
)
