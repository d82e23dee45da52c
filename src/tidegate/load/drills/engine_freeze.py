"""An engine that stands still: its connections stay open, and nothing comes."""

from __future__ import annotations

from tidegate.load.drills.bar import Bar, figure, not_duplicated, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.recovery import between, is_failed
from tidegate.load.drills.replica_faults import FREEZE
from tidegate.load.drills.scene import Scene

SETTLED_S = 6.0
"""The timeouts of the own deployment for a first byte, and a little more: later requests must not notice."""
LONGEST_S = 25.0


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
        late_ones = between(scene.samples, findings.broken_at + SETTLED_S, findings.healed_at)
        findings.figures["failed_after_settling"] = float(sum(map(is_failed, late_ones))) if late_ones else None


DRILL = Drill(
    name="freeze",
    rows=("S2-32", "S1-69"),
    question="A replica stands still and keeps its connections: how many requests wait for it, and for how long?",
    fault="one engine is stopped (SIGSTOP): it accepts and never answers",
    restores="SIGCONT",
    faults=(FREEZE,),
    bars=(
        Bar(
            name=f"failed though sent more than {SETTLED_S:g} s after the freeze",
            row="S2-32",
            figure=figure("failed_after_settling"),
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
