"""Several runs under one name: equal traffic for every seed, and ``cap:sweep``, which finds its number by trying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.simulate.figures import is_good
from tidegate.simulate.run import Run, simulate

SWEEP = "cap:sweep"
CAPS = tuple(round(1000 * 2 ** (half / 2), -2) for half in range(13))
"""Prompt tokens, from 1 000 to 64 000, each 1.4 x the one before; two more are tried around the best."""


def runs_of(scenario_name: str, policy_name: str, seeds: Sequence[int]) -> list[Run]:
    """One run per seed. ``cap:sweep`` is ``cap:N`` with the N that has most requests in their SLO in this very
    scenario with the first of the seeds: what somebody would have tuned by hand, at this load."""
    if policy_name != SWEEP:
        return [simulate(scenario_name, policy_name, seed) for seed in seeds]
    best = f"cap:{best_cap(scenario_name, seeds[0])}"
    return [replace(simulate(scenario_name, best, seed), policy=SWEEP, played=best) for seed in seeds]


def best_cap(scenario_name: str, seed: int) -> int:
    """The smallest of the best."""
    tried: dict[int, int] = {}

    def try_all(caps: Sequence[float]) -> int:
        for cap in map(int, caps):
            if cap not in tried:
                tried[cap] = _good(simulate(scenario_name, f"cap:{cap}", seed))
        return min(tried, key=lambda cap: (-tried[cap], cap))

    best = try_all(CAPS)
    return try_all([round(best / 2**0.25, -2), best, round(best * 2**0.25, -2)])


def _good(run: Run) -> int:
    return sum(is_good(visit, run.scenario.slo) for visit in run.visits)
