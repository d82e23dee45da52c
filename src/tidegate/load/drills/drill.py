"""One drill: what it asks, what it breaks, how it puts that back and what must hold meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tidegate.load.drills.bar import Bar
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    name: str
    rows: tuple[str, ...]
    """Of the requirements: what it proves."""
    question: str
    fault: str
    """What is done, in words."""
    restores: str
    """How that is put back."""
    faults: tuple[str, ...]
    """Names of the faults that a deployment must know (``OwnFault.name``, or ``faults`` of the drill file)."""
    bars: tuple[Bar, ...]
    play: Callable[[Scene], Coroutine[Any, Any, None]]
    setup: Setup = field(default_factory=Setup)
    """Of the deployment that is started for it."""
    broken_replicas: int = 1
    """At the same time; 0: it breaks something else."""
    expected_error_share: float = 0.6
    """In any few seconds. Beyond it the drill is ended and everything is put back (SPEC S1-72)."""
    needs_own: str = ""
    """Why it runs on a deployment of its own only; "" where it runs on any."""
    needs_peak: bool = False
    """It sends multiples of what the service can do."""
    least_replicas: int = 2
