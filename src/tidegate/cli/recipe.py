"""How one engine of our own is started, reached and spoken of, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.engines.launch import Launch
from tidegate.engines.openai import OpenaiServer
from tidegate.fleet.supervisor import SupervisorConfig
from tidegate.gateway.composition import Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Made before the start by ``cli.embedded_recipe`` and ``cli.vllm_recipe``."""

    product: str
    """What it is called in the log."""
    engine: OpenaiServer
    """Asked for readings."""
    told: Told
    """What is known before it runs."""
    launch: Launch
    loading_line: str
    """The start log's line before the wait (SPEC S0-11)."""
    is_slow: bool = False
    """It takes minutes to start, so nothing else waits for it, and its pool is asked for once it serves."""
    can_sleep: bool = False
    warnings: tuple[str, ...] = ()
    supervision: SupervisorConfig = field(default_factory=SupervisorConfig)
