"""An API behind the gateway takes requests and never answers: does that fail fast, or exhaust the service (S1-69)?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.bar import Bar, figure, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.own_deployment import PHASE, TIMEOUTS
from tidegate.load.drills.own_scene import change, order, own_of
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.stand_in import StandIn, paced, resident_bytes
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.testing.faults import Fault

API = "slow-api"
API_SEQUENCES = 64
API_RATE_PER_S = 10.0
TOTAL = {"floor_s": 10.0, "default_s": 10.0, "ceiling_s": 60.0}
CLASS_WAIT_S = 10.0
"""The longest that a request of class ``interactive`` stands in the queue before it has a place at the API."""
PATIENCE_S = 30.0
"""Of those who ask the API: longer than any timeout, so that it is the gateway that ends it."""
SETTLED_AFTER_S = 3.0
"""The slots of an engine that confirms no abort are free after two (``abort_grace_s``)."""
MARGIN_S = 3.0
"""On a busy machine, above the first-byte timeout."""
SAID = frozenset({ClientOutcome.ERROR, ClientOutcome.SHED})
"""Failures that say so."""


async def play(scene: Scene) -> None:
    api = StandIn(API, slots=API_SEQUENCES, kind="openai", model=API)
    scene.on_restore("the API's process", api.close)
    await api.start()
    replica = {"name": API, "url": api.url, "sequences": API_SEQUENCES}
    await change(scene, {f"upstreams.{API}": {"replicas": [replica]}})
    await scene.baseline()
    await api.fail(Fault.HANG)
    scene.mark_broken()
    before = _resident(scene)
    asked = await _ask(scene)
    rows = await scene.deployment.rows()
    scene.findings.figures |= figures_of(asked) | held_s(rows) | await _left(scene)
    after = _resident(scene)
    scene.findings.figures["memory_mib"] = None if None in (before, after) else ((after or 0) - (before or 0)) / 2**20
    await scene.restore()
    await scene.aftermath()


async def _ask(scene: Scene) -> list[Sample]:
    """Ask the API all the while; the answers, when the last of them has come."""
    pace, found = replace(scene.pace, patience_s=PATIENCE_S), list[Sample]()
    load = SteadyLoad(name=f"{API}-{time.time_ns() % 10**9}", rate_per_s=API_RATE_PER_S, pace=pace)
    target = replace(scene.deployment.target, model=API)
    sender = Sender(target, time.monotonic() - scene.now(), grace_s=PATIENCE_S)
    try:
        await sender.open_loop(load.asks(3), time.monotonic(), pace.fault_s, found.append, API)
    finally:
        await sender.close()
    return found


def figures_of(asked: Sequence[Sample]) -> dict[str, float | None]:
    """What became of those who asked the API."""
    failed = [each for each in asked if not each.is_answered]
    return {
        "api_asked": len(asked),
        "api_longest_stream_s": max((each.e2e_s for each in failed if each.is_stream), default=None),
        "api_longest_whole_s": max((each.e2e_s for each in failed if not each.is_stream), default=None),
        "api_unsaid": sum(each.outcome not in SAID for each in failed),
        "api_timeouts": sum(each.status == 504 for each in failed),
        "api_shed": sum(each.outcome is ClientOutcome.SHED for each in failed),
    }


def held_s(rows: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """By the gateway's records: how long the API's streams held a place of it, and how long they waited for one."""
    ours = [row for row in rows if row.get("upstream") == API and row.get("streaming") and row.get("admitted_at")]
    return {
        "api_held_s": max((row["closed_at"] - row["admitted_at"] for row in ours), default=None),
        "api_queued_s": max((row["admitted_at"] - row["arrived_at"] for row in ours), default=None),
    }


async def _left(scene: Scene) -> dict[str, float | None]:
    """What the API's requests still hold when all of them have ended."""
    await asyncio.sleep(SETTLED_AFTER_S)
    view = await order(own_of(scene), "GET", "/admin/view")
    replica = view["replicas"].get(API, {})
    return {"api_left_in_flight": replica.get("in_flight"), "permit_leaks": view["permit_leaks"]}


def _resident(scene: Scene) -> int | None:
    return resident_bytes(own_of(scene).gateway.data_pid())


def others_slower(findings: Findings) -> float | None:
    """P95 of the other model's answers while the API hangs, to that of before."""
    during = [p95 for at, *_, p95 in findings.moments if p95 is not None and _is_during(findings, at)]
    if not during or not findings.baseline_p95_s:
        return None
    return sorted(during)[len(during) // 2] / findings.baseline_p95_s


def _is_during(findings: Findings, at: float) -> bool:
    return findings.broken_at is not None and findings.broken_at <= at < (findings.healed_at or at)


DRILL = Drill(
    name="upstream-timeout",
    rows=("S1-69", "S2-32"),
    question="An API behind the gateway never answers: does that fail fast, and does everything else go on?",
    fault="a further upstream takes every request and sends nothing; it is asked ten times a second",
    restores="the upstream is taken out of the configuration, and its process ended",
    faults=(),
    setup=Setup(engine=paced, config={"tail": {"timeouts": {**TIMEOUTS, "total": TOTAL}}}),
    bars=(
        Bar(
            name="longest that a stream held a place at the API",
            row="S1-69",
            figure=figure("api_held_s"),
            most=PHASE["default_s"] + MARGIN_S,
            unit="s",
            hint="look at tail.timeouts.first_byte",
        ),
        Bar(
            name="longest wait for a stream's failure, the queue included",
            row="S1-69",
            figure=figure("api_longest_stream_s"),
            most=CLASS_WAIT_S + PHASE["default_s"] + MARGIN_S,
            unit="s",
            hint="look at shaping.classes.interactive.max_wait_s and at tail.timeouts.first_byte",
        ),
        Bar(
            name="longest wait for a whole answer's failure",
            row="S1-69",
            figure=figure("api_longest_whole_s"),
            most=CLASS_WAIT_S + TOTAL["default_s"] + MARGIN_S,
            unit="s",
            hint="a whole answer has no first byte before its end: look at tail.timeouts.total",
        ),
        Bar(
            name="of them without a status that says so",
            row="S1-69",
            figure=figure("api_unsaid"),
            most=0,
            hint="connections were cut or clients left: see the gateway's log",
        ),
        Bar(
            name="the other model's latency beside the baseline",
            row="S1-69",
            figure=others_slower,
            most=2.0,
            unit="x",
            hint="what do the two share? look at slot groups, tenants' quotas and the data process's CPU",
        ),
        Bar(name="errors of the other model", row="S1-69", figure=lambda findings: findings.errors, most=0),
        Bar(name="requests left in flight at the API", row="S1-69", figure=figure("api_left_in_flight"), most=0),
        Bar(name="permits leaked", row="S1-69", figure=figure("permit_leaks"), most=0),
        Bar(
            name="the data process's memory grew by",
            row="S1-69",
            figure=figure("memory_mib"),
            most=32,
            unit="MiB",
            hint="requests that wait hold their bodies: look at shaping.queue",
        ),
        recovered(5.0),
    ),
    play=play,
    needs_own="it adds an upstream that never answers",
    broken_replicas=0,
    least_replicas=1,
)
