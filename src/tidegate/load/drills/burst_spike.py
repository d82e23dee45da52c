"""A spike of two and of four times what the service can do (SPEC S1-68)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.bar import Bar, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_deployment import PATIENT
from tidegate.load.drills.recovery import is_failed
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample

SPIKES = (2.0, 4.0)
ERRORS = 0.005
"""SPEC S1-59, C9: a burst is survived with less than 0.5 % errors; sheds are refusals, and counted apart."""
MAX_WAIT_S = 4.0
"""Of the own deployment's queue: longer than any pause between two answers, shorter than a client's patience."""
LONGEST_S = 30.0


async def play(scene: Scene) -> None:
    await scene.baseline()
    scene.mark_broken()
    for times in SPIKES:
        rate_per_s = times * (scene.pace.peak_per_s or scene.pace.rate_per_s)
        name = f"burst-{scene.findings.began}-{times:g}"
        load = SteadyLoad(name=name, rate_per_s=rate_per_s, pace=scene.pace, label=f"spike x{times:g}")
        sent = await scene.send(load.asks(round(times)), scene.pace.fault_s / len(SPIKES) / 2)
        scene.findings.notes.append(told_of(times, rate_per_s, sent))
    scene.mark_healed()
    await scene.aftermath()
    await _count(scene)


async def _count(scene: Scene) -> None:
    findings = scene.findings
    hit = [each for each in scene.samples if each.due_at >= (findings.broken_at or 0.0)]
    findings.figures["error_share"] = sum(map(is_failed, hit)) / len(hit) if hit else None
    findings.figures["shed"] = float(sum(each.outcome is ClientOutcome.SHED for each in hit))
    findings.figures["answered_share"] = sum(each.is_answered for each in hit) / len(hit) if hit else None
    findings.figures["dishonest_sheds"] = dishonest_sheds(await scene.deployment.rows())
    findings.notes.append("no scale-out configured: how soon it brings relief could not be measured")


def told_of(times: float, rate_per_s: float, sent: Iterable[Sample]) -> str:
    ends = Counter(f"{each.outcome.value} {each.code}".strip() for each in sent)
    told = ", ".join(f"{count} {what}" for what, count in ends.most_common())
    return f"spike of {times:g} x the peak ({rate_per_s:.1f} requests/s): {told}"


def dishonest_sheds(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Refusals for load that do not say when to come back. None: the gateway shows no requests."""
    rows = list(rows)
    shed = [row for row in rows if row["status"] in (429, 503)]
    return float(sum(not row["retry_after_s"] for row in shed)) if rows else None


DRILL = Drill(
    name="burst",
    rows=("S1-68", "S1-59"),
    question="Traffic jumps to two and four times the peak: is it survived without an avalanche, and who is dropped?",
    fault="a spike of 2 x and one of 4 x the measured peak rate, beside the steady load",
    restores="the spikes end",
    faults=(),
    bars=(
        Bar(
            name="errors",
            row="S1-59",
            figure=figure("error_share"),
            most=ERRORS,
            unit="of all requests",
            hint="an overload must become refusals, not errors: look at limits and at the queue",
        ),
        Bar(
            name="refusals for load without Retry-After",
            row="S1-68",
            figure=figure("dishonest_sheds"),
            needs_inside=True,
            most=0,
            hint="clients that are not told when to come back come at once",
        ),
        Bar(
            name="longest wait of a client",
            row="S1-68",
            figure=lambda findings: findings.longest_s,
            most=LONGEST_S,
            unit="s",
            hint="the queue holds requests longer than clients wait: look at classes.interactive.max_wait_s",
        ),
        recovered(15.0),
        not_duplicated(),
    ),
    play=play,
    needs_peak=True,
    setup=Setup(config={"classes": {"interactive": {"max_wait_s": MAX_WAIT_S}}, "tail": {"timeouts": PATIENT}}),
    broken_replicas=0,
    expected_error_share=0.2,
    least_replicas=1,
)
