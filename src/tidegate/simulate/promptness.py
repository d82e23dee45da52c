"""How many were done within the time that a scenario names, by calls and by chains of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from tidegate.simulate.figures import e2e_s, share
from tidegate.simulate.quantile import quantile
from tidegate.simulate.scenario import Burst, Scenario
from tidegate.simulate.visit import Visit

SCHEMA: dict[str, str] = {
    "done_in_time": "null unless the scenario names a time for a whole answer. limit_s: that time, from the user's "
    "first call to the last token; rate: the share of offered that was answered, in full or degraded, within it; "
    "burst_rate: the same of those whose first call lies in the burst; p99_s: over all of these last, whoever got no "
    "answer being the longest, null where that is one of them",
    "chains": "null unless users make calls that each begin when the one before was answered. The same figures of "
    "whole chains, from the first call to the end of the last (limit_s as above), and offered; finished_rate: the "
    "share whose last call was answered; degraded_rate: of those, with a degraded answer in one of the calls",
}


def done_in_time(visits: Sequence[Visit], scenario: Scenario) -> dict[str, Any] | None:
    if scenario.done_within_s is None or _has_chains(scenario):
        return None
    times = [(visit.demand.at, e2e_s(visit) if visit.is_answered else inf) for visit in visits]
    return _timely(times, scenario.done_within_s, scenario.burst)


def chains(visits: Sequence[Visit], scenario: Scenario) -> dict[str, Any] | None:
    if scenario.done_within_s is None or not _has_chains(scenario):
        return None
    found: dict[int, list[Visit]] = {}
    for visit in visits:
        if visit.demand.chain is not None:
            found.setdefault(visit.demand.chain, []).append(visit)
    finished = [chain for chain in found.values() if _took_s(chain) < inf]
    degraded = sum(any(visit.is_degraded for visit in chain) for chain in finished)
    times = [(chain[0].demand.at, _took_s(chain)) for chain in found.values()]
    return {
        "offered": len(found),
        "finished_rate": share(len(finished), len(found)),
        "degraded_rate": share(degraded, len(finished)),
        **_timely(times, scenario.done_within_s, scenario.burst),
    }


def _has_chains(scenario: Scenario) -> bool:
    return any(demand.chain is not None for demand in scenario.demands)


def _took_s(chain: Sequence[Visit]) -> float:
    """Visits of one chain in their order."""
    last = chain[-1]
    is_whole = last.is_answered and last.demand.then is None
    return last.ended_at - chain[0].demand.at if is_whole else inf


def _timely(times: Sequence[tuple[float, float]], limit_s: float, burst: Burst | None) -> dict[str, Any]:
    """``times``: when each began, and how long it took."""
    inside = [took_s for at, took_s in times if burst is None or burst.start_s <= at < burst.end_s]
    worst_s = quantile(sorted(inside), 0.99) if inside else inf
    return {
        "limit_s": limit_s,
        "rate": share(sum(took_s <= limit_s for _, took_s in times), len(times)),
        "burst_rate": None if burst is None else share(sum(took_s <= limit_s for took_s in inside), len(inside)),
        "p99_s": round(worst_s, 4) if worst_s < inf else None,
    }
