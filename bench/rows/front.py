"""A data process behind a bare parent: what the bench measures, without an admin port or polling.

``front.py PORT UPSTREAM_PORT [REPLICAS [SEQUENCES]]`` serves the model ``mock-model``. With several
replicas all of them stand for the same engine. ``SEQUENCES`` bounds what each runs at once, so that
a closed loop with more connections than that makes every request wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any

from tidegate.gateway.child import Child
from tidegate.gateway.messages import Start
from tidegate.gateway.settings import Endpoint, Settings, to_plain
from tidegate.lens.row import Row
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig

MODEL = "mock-model"


class Bare:
    """A parent that throws everything away."""

    def on_records(self, rows: list[Row], lost: int) -> None:
        """Rows are not kept."""

    def on_poll_soon(self, replica: str) -> None:
        """Nothing is polled."""

    def on_learned(self, state: dict[str, Any]) -> None:
        """Nothing is kept for a next start."""

    def on_log(self, level: str, text: str) -> None:
        """Say it: a bench with errors in it measures something else."""
        print(level, text, file=sys.stderr, flush=True)


def settings(port: int, upstream_port: int, replicas: int, sequences: int | None) -> Settings:
    names = [f"mock-{number}" for number in range(replicas)]
    capacity = Capacity(sequences=sequences)
    path = PathConfig(
        replicas=tuple(ReplicaConfig(name=name, upstream=MODEL, capacity=capacity) for name in names),
        # The mock takes anything; a limit that has still to grow would let requests wait where none should.
        limit=LimitConfig(initial=1024),
    )
    return Settings(
        path=path,
        endpoints=tuple(Endpoint(name=name, host="127.0.0.1", port=upstream_port) for name in names),
        port=port,
        is_cache_enabled=True,
    )


async def main(port: int, upstream_port: int, replicas: int = 1, sequences: int | None = None) -> None:
    child = await Child.spawn(Start(to_plain(settings(port, upstream_port, replicas, sequences))), Bare())
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    await child.stop()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*map(int, sys.argv[1:])))
