"""What choosing among replicas adds to a request's decisions: 1, 4, 16 and 64 replicas, without digests of the prompt
and with five of them, half of whose prompts begin as an earlier one did.

    python bench/balance.py [--rounds 9]

Nobody waits; each request is offered, gets its first token, is settled and closed. They take turns in every round;
figures are medians of the rounds, and the ratios are of the same round.
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

REQUESTS = 2000
DIGESTS = 5
SHARES = tuple(2.0**-power for power in range(DIGESTS))


class Way:
    """So many replicas, which keep what they have learned from round to round."""

    def __init__(self, replicas: int, *, has_digests: bool) -> None:
        capacity = Capacity(kv_tokens=400_000, sequences=256)
        made = tuple(ReplicaConfig(name=f"m-{index}", upstream="m", capacity=capacity) for index in range(replicas))
        self._path = Path(PathConfig(replicas=made), 0.0)
        self._has_digests = has_digests
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
        now, number = self._now, self._next_id
        request = Request(number, "m", now, number * 0x9E3779B97F4A7C15 % 2**64, 300, False, 512)
        if self._has_digests:
            request.prefixes = tuple([(number // 2 * DIGESTS + index, share) for index, share in enumerate(SHARES)])
        decision = path.offer(request, now)
        if type(decision) is not Admit:
            raise RuntimeError(f"nobody should wait here: {decision}")
        path.progress(decision.permit, Progress.FIRST_TOKEN, now)
        path.settle(decision.permit, Outcome.OK, now + 0.0005, output_tokens=50 + number % 200)
        path.close(request.id, now)
        path.advance(now)


def main() -> int:
    parser = argparse.ArgumentParser(description="what choosing among replicas costs per request")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    gc.disable()
    ways = {(count, has): Way(count, has_digests=has) for count in (1, 4, 16, 64) for has in (False, True)}
    found: dict[tuple[int, bool], list[float]] = {key: [] for key in ways}
    for _ in range(rounds):
        for key, way in ways.items():
            found[key].append(way.run())
    print(f"{'replicas':>8} {'digests':>8}{'us/request':>12}{'x one':>8}")
    for (count, has), times in found.items():
        ratio = statistics.median(a / b for a, b in zip(times, found[1, False], strict=True))
        print(f"{count:>8} {DIGESTS if has else 0:>8}{statistics.median(times) * 1e6:>12.1f}{ratio:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
