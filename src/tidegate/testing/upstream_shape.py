"""What ``faulty_upstream`` is like, and what it keeps of each request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Shape:
    """How fast it is and what it says that it is."""

    slots: int = 8
    pace_s: float = 0.02
    first_s: float = 0.02
    kind: str = "vllm"
    """``vllm``: its figures are shown as vLLM's; ``openai``: it tells none."""
    model: str = "m"


@dataclass(slots=True)
class Asked:
    """One request for an answer."""

    request_id: str
    came_at: float
    began_at: float = 0.0
    """When it got a slot; 0.0: never."""
    tokens: int = 0
    ended_at: float = 0.0
    end: str = ""
    """``done``, ``left`` (the connection was lost first) or the fault that ended it."""
    headers: tuple[tuple[str, str], ...] = ()
