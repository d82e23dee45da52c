"""Findings and a drill for tests."""

from __future__ import annotations

from typing import Any

from tidegate.load.drills.bar import Bar
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.restart_check import RestartCheck
from tidegate.load.drills.scene import Scene


def findings(**changes: Any) -> Findings:
    told: dict[str, Any] = {
        "drill": "made", "question": "Is it well?", "rows": ("S1-65",), "fault": "one is killed", "deployment": "own",
        "began": "2026-12-01T03:00:00+00:00",
    }  # fmt: skip
    return Findings(**(told | changes))


def restart(**changes: Any) -> RestartCheck:
    told: dict[str, Any] = {
        "replica": "a", "is_loaded": True, "back_s": 2.0, "first_request_s": 0.8, "second_request_s": 0.2,
        "cached_before": 90, "cached_first": 0, "cached_second": 90, "resident_before_bytes": 400 << 20,
        "resident_after_bytes": 380 << 20,
    }  # fmt: skip
    return RestartCheck(**(told | changes))


async def nothing(_scene: Scene) -> None:
    """A drill that does nothing."""


def drill(**changes: Any) -> Drill:
    told: dict[str, Any] = {
        "name": "made", "rows": ("S1-65",), "question": "Is it well?", "fault": "one is killed", "restores": "started",
        "faults": ("kill",), "play": nothing,
        "bars": (Bar(name="lost", row="S1-65", figure=lambda found: found.lost, most=0, hint="look there"),),
    }  # fmt: skip
    return Drill(**(told | changes))
