"""What a drill needs of the service that it breaks, whether it started that service or was given it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tidegate.engines.address import Address
from tidegate.load.drills.setup import Setup
from tidegate.load.target import Target


class Deployment(Protocol):
    """A fault is called by its name; ``replica`` is None where it is one of the whole service."""

    name: str
    is_own: bool
    """Started for the drill: nobody else uses it."""

    @property
    def target(self) -> Target:
        """Where the load goes; known once ``prepare`` has returned."""

    @property
    def replicas(self) -> Sequence[str]: ...

    def breakable(self, fault: str, /) -> Sequence[str]:
        """Replicas that can be broken so."""

    @property
    def most_broken(self) -> int:
        """Replicas that may be broken at the same time (the blast radius)."""

    @property
    def most_error_share(self) -> float:
        """Beyond it a drill is ended, whatever that drill expects."""

    def why_not(self, fault: str) -> str:
        """Why it can't be broken so; "": it can."""

    async def prepare(self, setup: Setup, /) -> None:
        """All is well, and as ``setup`` wants it. Raises TidegateError."""

    async def break_(self, fault: str, replica: str | None) -> None:
        """Raises TidegateError where that fails."""

    async def restore(self, fault: str, replica: str | None) -> None:
        """Returns when it serves again; harmless where nothing is broken. Raises TidegateError."""

    async def view(self) -> Mapping[str, Any] | None:
        """What the gateway's admin API shows; None: nothing."""

    async def rows(self) -> Sequence[Mapping[str, Any]]:
        """Finished requests as the gateway saw them."""

    def take_remarks(self) -> list[str]:
        """What is to be told of how something was broken; once."""

    def duplicated(self) -> int | None:
        """Request ids for which engines wrote more than one whole answer; None: nobody could tell."""

    def engine(self, replica: str) -> Address | None:
        """Where that replica's engine is asked directly; None: it is not known."""

    def pid(self, replica: str, /) -> int | None: ...

    def resident_bytes(self, replica: str, /) -> int | None: ...

    async def close(self) -> None: ...
