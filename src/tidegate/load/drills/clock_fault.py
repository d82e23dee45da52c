"""The gateway's wall clock jumps; nobody else's does.

A library before libc (libfaketime) tells the gateway's processes another time of day, by a file that may change while
they run. The monotonic clock is left alone, as the kernel does when somebody sets the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tidegate.load.drills.own_deployment import OwnDeployment

CLOCK = "clock-jump"
HOUR_S = 3600
FILE = "clock"
"""In the deployment's folder, where the gateway runs."""
READ_WITHIN_S = 1.0
PLACES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib")


class ClockJump:
    """To an hour ahead; ``turn`` sets another."""

    name = CLOCK

    def why_not(self) -> str:
        """Part of ``OwnFault``."""
        return "" if library() else "it needs libfaketime (apt-get install libfaketime)"

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Part of ``OwnFault``."""
        await turn(own.folder, HOUR_S)

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Part of ``OwnFault``."""
        await turn(own.folder, 0)


async def turn(folder: Path, seconds: int) -> None:
    """Returns when the gateway's clock is so far from the machine's."""
    (folder / FILE).write_text(f"{seconds:+d}\n")
    await asyncio.sleep(READ_WITHIN_S + 0.1)


def library(places: tuple[str, ...] = PLACES) -> str:
    """Of libfaketime, the one for threads; "" where there is none."""
    found = [str(path) for place in places for path in sorted(Path(place).glob("**/faketime/libfaketimeMT.so.1"))]
    return found[0] if found else ""


def clock_env(preloaded: str) -> Mapping[str, str]:
    """Of a gateway whose clock can be turned; nothing without the library."""
    if not preloaded:
        return {}
    return {
        "LD_PRELOAD": preloaded,
        "FAKETIME_TIMESTAMP_FILE": FILE,
        "FAKETIME_CACHE_DURATION": f"{READ_WITHIN_S:g}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
