"""An engine that stands still: its connections stay open, and nothing comes."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.load.drills.bar import Bar, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.recovery import between, is_failed
from tidegate.load.drills.replica_faults import FREEZE
from tidegate.load.drills.scene import Scene
from tidegate.load.sample import Sample

SETTLED_S = 6.0
"""The timeouts of the own deployment for a first byte, and a little more: later requests must not notice."""
LONGEST_S = 25.0
COOLDOWN_S = 3.0
"""The longest of a breaker."""


async def play(scene: Scene) -> None:
    (victim,) = scene.victims(FREEZE)
    await scene.baseline()
    await scene.note_running(victim)
    await scene.break_(FREEZE, victim)
    await scene.fault_time()
    await scene.restore()
    await scene.aftermath()
    findings = scene.findings
    if findings.broken_at is not None and findings.healed_at is not None:
        settled_at = findings.broken_at + SETTLED_S
        after = between(scene.samples, settled_at, findings.healed_at)
        findings.figures["failed_beyond_probes"] = beyond_probes(after, findings.healed_at - settled_at)


def beyond_probes(samples: Sequence[Sample], span_s: float) -> float | None:
    """How many failed that were no probes: a half-open breaker tries one request after each cooldown."""
    probes = 1 + int(max(0.0, span_s) / COOLDOWN_S)
    return max(0.0, float(sum(map(is_failed, samples)) - probes)) if samples else None


DRILL = Drill(
    name="freeze",
    rows=("S2-32", "S1-69"),
    question="A replica stands still and keeps its connections: how many requests wait for it, and for how long?",
    fault="one engine is stopped (SIGSTOP): it accepts and never answers",
    restores="SIGCONT",
    faults=(FREEZE,),
    bars=(
        Bar(
            name=f"failed though sent {SETTLED_S:g} s after the freeze, beyond a breaker's probes",
            row="S2-32",
            figure=figure("failed_beyond_probes"),
            most=0,
            hint="the breaker does not take it out: look at tail.timeouts.first_byte and at health.breaker",
        ),
        Bar(
            name="lost beyond what ran on it",
            row="S1-69",
            figure=figure("lost_beyond"),
            needs_inside=True,
            most=0,
            hint="requests without a first byte are to be told so or sent elsewhere, not left waiting",
        ),
        Bar(
            name="longest wait of a client",
            row="S1-69",
            figure=lambda findings: findings.longest_s,
            most=LONGEST_S,
            unit="s",
            hint="an endless wait: look at tail.timeouts",
        ),
        recovered(10.0),
        not_duplicated(),
    ),
    play=play,
)
