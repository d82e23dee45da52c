"""What a drill wants of the deployment that is started for it, where that differs from the usual one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Between(Protocol):
    """Stands between the gateway and one engine, such as a proxy that breaks what passes."""

    @property
    def url(self) -> str:
        """What the gateway is told in place of the engine's URL; known once it is started."""

    @property
    def answered(self) -> Counter[str]:
        """Whole answers to POSTs that the engine wrote, by ``x-request-id``."""

    async def start(self, port: int = 0) -> None:
        """0: at a free port."""

    async def close(self) -> None:
        """Nobody listens there any more, and what was open is closed."""


class Engine(Protocol):
    """An engine of the deployment's own, at the same ``url`` over all its lives."""

    name: str

    @property
    def url(self) -> str: ...

    @property
    def api_key(self) -> str: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def resident_bytes(self) -> int | None: ...

    @property
    def is_serving(self) -> bool:
        """Its port is open; while it is not, neither is the port of what stands before it."""

    @property
    def lives(self) -> int:
        """How often it has come up."""

    async def start(self) -> None:
        """Returns when it serves."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A deployment is started anew for a drill whose setup differs from the one before."""

    config: Mapping[str, Any] = field(default_factory=dict)
    """Sections laid over the gateway's configuration."""
    upstream: Mapping[str, Any] = field(default_factory=dict)
    """Keys laid over its one upstream."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the gateway's environment."""
    prefix: tuple[str, ...] = ()
    """Before the gateway's command, such as ``("prlimit", "--fsize=0")``."""
    stdout: str | None = None
    """Where the gateway's standard output goes in place of its log; standard error goes to the log always."""
    between: Callable[[str], Between] | None = None
    """Makes what stands before each engine, from the engine's URL; None: a ``FaultProxy`` that breaks nothing."""
    engine: Callable[[str], Engine] | None = None
    """Makes each engine from its name, in place of the embedded one."""
    is_capped: bool = False
    """Each embedded engine runs under a memory cap of its own, where this machine has any."""
    replicas: int | None = None
    """In place of what the command line says."""
