"""What Path costs per request: when nobody waits, with a queue of 1 000 to 100 000, and for a refusal.

    python bench/decisions.py [--rounds 7]

One replica. *nobody waits*: offer, first token, settle, close, advance. *queued*: so many stand in the queue, of so
many tenants; in each turn an answer ends, the next ticket goes, and a newcomer takes its place at the end: the whole
of what one request costs while others wait. *refused*: offer and close of a request that the full queue, its
deadline or its tenant's quota turns away. The ways take turns in every round; figures are medians of the rounds in
µs of CPU, ratios are of the same round against *nobody waits*.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from tidegate.policy.classes import ClassesConfig
from tidegate.policy.decisions import Admit, Refuse, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.queue import QueueConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.request import Request

REQUESTS = 4000
PLACES = 64
HUGE = QueueConfig(max_requests=10**7, max_tokens=10**12, max_bytes=10**15)
PATIENT = ClassesConfig(classes={name: replace(c, max_wait_s=1e6) for name, c in ClassesConfig().classes.items()})


def replica(sequences: int) -> ReplicaConfig:
    return ReplicaConfig(name="m-0", upstream="m", capacity=Capacity(kv_tokens=10**7, sequences=sequences))


class Traffic:
    """One Path and the requests that are offered to it, numbered on."""

    def __init__(self, config: PathConfig, tenants: int = 1) -> None:
        self.path = Path(config, 0.0)
        self.now = 0.0
        self.next_id = 0
        self.tenants = tenants
        self.live: list[Permit] = []

    def request(self) -> Request:
        self.next_id += 1
        self.now += 0.001
        number = self.next_id
        prompt_tokens, tenant = 200 + number * 37 % 600, f"t{number * 7919 % self.tenants}"
        return Request(number, "m", self.now, number * 7919, prompt_tokens, False, 256, tenant=tenant)

    def pass_one(self) -> None:
        """A request that nobody stands before."""
        request = self.request()
        decision = self.path.offer(request, self.now)
        if not isinstance(decision, Admit):
            raise RuntimeError(f"nobody should wait here: {decision}")
        self.path.progress(decision.permit, Progress.FIRST_TOKEN, self.now)
        self._end(decision.permit)

    def fill(self, waiting: int) -> None:
        while len(self.live) < PLACES or waiting > 0:
            decision = self.path.offer(self.request(), self.now)
            if isinstance(decision, Admit):
                self._begin(decision.permit)
            elif isinstance(decision, Wait):
                waiting -= 1
            else:
                raise RuntimeError(f"the queue should hold it: {decision}")

    def queue_one(self) -> None:
        """An answer ends, somebody goes, somebody comes."""
        self._end(self.live.pop(0))
        decision = self.path.offer(self.request(), self.now)
        if not isinstance(decision, Wait):
            raise RuntimeError(f"it should wait: {decision}")
        for verdict in self.path.advance(self.now):
            if isinstance(verdict.decision, Admit):
                self._begin(verdict.decision.permit)

    def refuse_one(self) -> None:
        request = self.request()
        decision = self.path.offer(request, self.now)
        if not isinstance(decision, Refuse):
            raise RuntimeError(f"it should be refused: {decision}")
        self.path.close(request.id, self.now)

    def _begin(self, permit: Permit) -> None:
        self.path.progress(permit, Progress.FIRST_TOKEN, self.now)
        self.live.append(permit)

    def _end(self, permit: Permit) -> None:
        self.path.settle(permit, Outcome.OK, self.now, output_tokens=100)
        self.path.close(permit.request_id, self.now)
        for verdict in self.path.advance(self.now):
            if isinstance(verdict.decision, Admit):
                self._begin(verdict.decision.permit)


def queued(waiting: int, tenants: int) -> Callable[[], None]:
    config = PathConfig(replicas=(replica(PLACES),), queue=HUGE, classes=PATIENT)
    traffic = Traffic(config, tenants)
    traffic.fill(waiting)
    return traffic.queue_one


def refused(config: PathConfig) -> Callable[[], None]:
    traffic = Traffic(config)
    traffic.fill(1)
    return traffic.refuse_one


def ways() -> dict[str, Callable[[], None]]:
    full = PathConfig(replicas=(replica(PLACES),), queue=QueueConfig(max_requests=1), classes=PATIENT)
    over_quota = PathConfig(replicas=(replica(PLACES),), quota=QuotaConfig(max_in_flight=PLACES + 1), classes=PATIENT)
    return {
        "nobody waits": Traffic(PathConfig(replicas=(replica(PLACES),))).pass_one,
        "1 000 wait, 1 tenant": queued(1_000, 1),
        "1 000 wait, 50 tenants": queued(1_000, 50),
        "100 000 wait, 1 tenant": queued(100_000, 1),
        "100 000 wait, 5 000 tenants": queued(100_000, 5_000),
        "refused, queue full": refused(full),
        "refused, over quota": refused(over_quota),
    }


def measure(step: Callable[[], None]) -> float:
    """CPU µs per request."""
    began = time.process_time()
    for _ in range(REQUESTS):
        step()
    return (time.process_time() - began) / REQUESTS * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    every = ways()
    gc.collect()
    gc.disable()
    seen: dict[str, list[float]] = {name: [] for name in every}
    for _ in range(rounds):
        for name, step in every.items():
            seen[name].append(measure(step))
    base = seen["nobody waits"]
    print(f"{'':30} {'µs':>7} {'× nobody waits':>15}")
    for name, figures in seen.items():
        ratio = statistics.median(one / other for one, other in zip(figures, base, strict=True))
        print(f"{name:30} {statistics.median(figures):7.1f} {ratio:15.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
