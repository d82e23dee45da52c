"""The disk under the gateway's files is full."""

from __future__ import annotations

import resource
import sys

from tidegate.errors import EngineError
from tidegate.load.drills.own_deployment import OwnDeployment

DISK_FULL = "disk-full"


class DiskFull:
    """The gateway's processes may not make any file longer (RLIMIT_FSIZE), so that each write to one fails as it would
    on a full disk; the disk itself is left alone. Sockets and pipes are no files."""

    name = DISK_FULL

    def __init__(self) -> None:
        self._limits: dict[int, tuple[int, int]] = {}
        """As they were, by process."""

    def why_not(self) -> str:
        """Part of ``OwnFault``."""
        return "" if sys.platform.startswith("linux") else "it needs Linux (prlimit)"

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Part of ``OwnFault``."""
        parent = own.gateway.pid
        if parent is None:
            raise EngineError("the gateway does not run")
        for pid in (parent, *own.gateway.children()):
            usual = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            self._limits[pid] = usual
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, usual[1]))

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Part of ``OwnFault``."""
        while self._limits:
            pid, usual = self._limits.popitem()
            try:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)
            except ProcessLookupError:
                continue  # It ended, and took its limit along.
