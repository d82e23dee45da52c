"""Generated traffic with the statistics of the Azure 2023 and Mooncake traces.

Used where no trace folder is given. Nothing is copied: lengths are drawn from ten-odd quantiles per
trace (log-linear between them), prompt and output independently (their correlation in the traces is
-0.11 to 0.07), arrivals from a process with the trace's mean rate and the kind of its bursts. Ten
minutes long. Sources of the statistics: Patel et al., Splitwise, ISCA 2024 (CC-BY 4.0); Qin et al.,
Mooncake, FAST'25 (Apache-2.0).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from random import Random

from tidegate.simulate.arrivals import Arrival, poisson
from tidegate.simulate.streams import stream

DURATION_S = 600.0

Quantiles = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """``busy_s`` and ``quiet_s``: mean lengths of bursts and of the silences between them, 0 for none."""

    rate_per_s: float
    prompt: Quantiles
    output: Quantiles
    busy_s: float = 0.0
    quiet_s: float = 0.0


LIKENESSES: dict[str, Likeness] = {
    "azure-conv": Likeness(
        rate_per_s=5.53,
        prompt=(
            (0.0, 2), (0.05, 181), (0.1, 207), (0.25, 396), (0.4, 703), (0.5, 1020), (0.6, 1071),
            (0.75, 1189), (0.9, 2734), (0.95, 4083), (0.99, 4142), (1.0, 14050),
        ),
        output=(
            (0.0, 7), (0.1, 54), (0.25, 85), (0.5, 129), (0.6, 177), (0.75, 395), (0.9, 424), (0.99, 601), (1.0, 1000),
        ),
    ),
    "azure-code": Likeness(
        rate_per_s=2.57,
        prompt=((0.0, 3), (0.1, 147), (0.25, 578), (0.5, 1469), (0.75, 2744), (0.9, 5186), (0.95, 7302), (1.0, 7437)),
        output=((0.0, 6), (0.25, 9), (0.5, 13), (0.75, 24), (0.9, 55), (0.95, 90), (0.99, 249), (1.0, 1899)),
        busy_s=6.0,
        quiet_s=16.0,
    ),
    "mooncake": Likeness(
        rate_per_s=3.40,
        prompt=((0.0, 900), (0.5, 6909), (0.9, 27367), (0.95, 39552), (0.99, 85401), (1.0, 126195)),
        output=((0.0, 2), (0.5, 350), (0.9, 597), (0.95, 698), (0.99, 1120), (1.0, 2000)),
    ),
}  # fmt: skip


def sample(quantiles: Quantiles, uniform: float) -> int:
    """The length at probability ``uniform``."""
    index = bisect_right(quantiles, uniform, key=lambda point: point[0])
    (left, low), (right, high) = quantiles[index - 1], quantiles[index]
    share = (uniform - left) / (right - left)
    return max(1, round(low * exp(log(high / low) * share)))


def lookalike(name: str, seed: int) -> list[Arrival]:
    """Ten minutes of traffic like the trace ``name``, unlabelled."""
    likeness = LIKENESSES[name]
    times = _times(likeness, stream(seed, f"{name}/arrivals"))
    rng = stream(seed, f"{name}/lengths")
    return [
        Arrival(at, sample(likeness.prompt, rng.random()), sample(likeness.output, rng.random()), "") for at in times
    ]


def _times(likeness: Likeness, rng: Random) -> Iterator[float]:
    if likeness.busy_s == 0:
        yield from poisson(rng, likeness.rate_per_s, 0.0, DURATION_S)
        return
    rate_per_s = likeness.rate_per_s * (likeness.busy_s + likeness.quiet_s) / likeness.busy_s
    time = 0.0
    while time < DURATION_S:
        end = min(time + rng.expovariate(1 / likeness.busy_s), DURATION_S)
        # Bursts differ in height as well: the log-normal factor has mean 1.
        yield from poisson(rng, rate_per_s * rng.lognormvariate(-0.5 * log(2), log(2) ** 0.5), time, end)
        time = end + rng.expovariate(1 / likeness.quiet_s)
