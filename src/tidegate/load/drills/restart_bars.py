"""Bars of every drill in which a replica is started again (SPEC S1-64)."""

from __future__ import annotations

from tidegate.load.drills.bar import Bar, figure

RESIDUAL = 1.25
"""Memory after a restart beside that before it: an engine that has just loaded holds less, not more."""

COLD = 0.5
"""The template that every chat begins with comes back with the first other request; the prompt itself may not."""


def restart_bars(back_s: float, first_request_s: float) -> tuple[Bar, ...]:
    return (
        Bar(
            name="restarted replicas without their model",
            row="S1-64",
            figure=figure("not_loaded"),
            needs_inside=True,
            most=0,
            hint="look at the engine's log: did it load its model, and the right one?",
        ),
        Bar(
            name="serves again",
            row="S1-66",
            figure=figure("back_s"),
            needs_inside=True,
            most=back_s,
            unit="s after its end",
            hint="keep the model's file in the page cache or near; look at fleet restarts (pauses double)",
        ),
        Bar(
            name="first request after the restart",
            row="S1-66",
            figure=figure("first_request_s"),
            needs_inside=True,
            most=first_request_s,
            unit="s",
            hint="warm the engine up before it takes traffic",
        ),
        Bar(
            name="share of a known prompt that was still cached",
            row="S1-64",
            figure=figure("warm_share"),
            needs_inside=True,
            most=COLD,
            hint="a cache that outlives the process: is it shared, and may it be?",
        ),
        Bar(
            name="memory beside that before the restart",
            row="S1-64",
            figure=figure("residual"),
            needs_inside=True,
            most=RESIDUAL,
            unit="x",
            hint="the old process has left memory behind: look for orphans (nvidia-smi, ps)",
        ),
    )
