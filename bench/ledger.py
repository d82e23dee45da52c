"""What the KV ledger adds to a request's decisions (SPEC S0-23): none, by worst case, the same in a slot group of
three under its floor and above it, by learned lengths.

    python bench/ledger.py [--rounds 15]

One replica, nobody waits; each request is offered, gets its first token, is settled and closed. They take turns
in every round; figures are medians of the rounds, and the ratios are of the same round.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from dataclasses import replace

from tidegate.policy.decisions import Admit
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig

REQUESTS = 4000
REPLICA = ReplicaConfig(name="m-0", upstream="m", capacity=Capacity(kv_tokens=400_000, sequences=256))
IN_GROUP = replace(REPLICA, group="m", capacity=replace(REPLICA.capacity, bytes_per_token=1))


def shared(floor_bytes: int) -> PathConfig:
    """The replica in a pool of three groups."""
    groups = tuple(GroupConfig(name=name, floor_bytes=floor_bytes, cap_bytes=400_000) for name in ("m", "n", "o"))
    pool = PoolConfig(name="card", budget_bytes=400_000, groups=groups)
    return PathConfig(replicas=(IN_GROUP,), groups=GroupsConfig(pools=(pool,)))


WAYS = {
    "no ledger": PathConfig(replicas=(REPLICA,), slots=SlotsConfig(enabled=False)),
    "worst_case": PathConfig(replicas=(REPLICA,)),
    "its floor": shared(100_000),
    "a loan": shared(0),
    "learned": PathConfig(replicas=(REPLICA,), slots=SlotsConfig(mode="learned")),
}


class Way:
    """One configuration, which keeps what it has learned from round to round."""

    def __init__(self, config: PathConfig) -> None:
        self._path = Path(config, 0.0)
        self._now = 0.0
        self._next_id = 0

    def run(self) -> float:
        """CPU seconds per request of one round."""
        began = time.process_time()
        for _ in range(REQUESTS):
            self._request()
        return (time.process_time() - began) / REQUESTS

    def _request(self) -> None:
        path = self._path
        self._next_id += 1
        self._now += 0.001
        now = self._now
        request = Request(self._next_id, "m", now, self._next_id * 7919, 300, False, 512)
        decision = path.offer(request, now)
        if type(decision) is not Admit:
            raise RuntimeError(f"nobody should wait here: {decision}")
        path.progress(decision.permit, Progress.FIRST_TOKEN, now)
        path.settle(decision.permit, Outcome.OK, now + 0.0005, output_tokens=50 + self._next_id % 200)
        path.close(request.id, now)
        path.advance(now)


def main() -> int:
    parser = argparse.ArgumentParser(description="what the KV ledger costs per request")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    gc.disable()
    ways = {name: Way(config) for name, config in WAYS.items()}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way.run())
    print(f"{'':12}{'us/request':>12}{'x no ledger':>14}")
    for name, times in found.items():
        ratio = statistics.median(a / b for a, b in zip(times, found["no ledger"], strict=True))
        print(f"{name:12}{statistics.median(times) * 1e6:>12.1f}{ratio:>14.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
