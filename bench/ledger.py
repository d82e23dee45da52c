"""What the KV ledger adds to a request's decisions (SPEC S0-23): none, by worst case, by learned lengths.

    python bench/ledger.py [--rounds 15]

One replica, nobody waits; each request is offered, gets its first token, is settled and closed. The three take turns
in every round; figures are medians of the rounds, and the ratios are of the same round.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time

from tidegate.policy.decisions import Admit
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig

REQUESTS = 4000
REPLICA = ReplicaConfig(name="m-0", upstream="m", capacity=Capacity(kv_tokens=400_000, sequences=256))
WAYS = {
    "no ledger": SlotsConfig(enabled=False),
    "worst_case": SlotsConfig(),
    "learned": SlotsConfig(mode="learned"),
}


class Way:
    """One configuration, which keeps what it has learned from round to round."""

    def __init__(self, slots: SlotsConfig) -> None:
        self._path = Path(PathConfig(replicas=(REPLICA,), slots=slots), 0.0)
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
    ways = {name: Way(slots) for name, slots in WAYS.items()}
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
