"""What those who came in the burst got, and how much of it was by a rung of the degradation ladder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.simulate.breakdown import by_kind, by_length
from tidegate.simulate.figures import is_good, share
from tidegate.simulate.scenario import Burst, Slo
from tidegate.simulate.visit import Visit

SCHEMA: dict[str, str] = {
    "burst": "of the requests whose first call lies in the burst, null without one. offered; errors_rate, in_slo_rate: "
    "shares of them as errors and goodput_requests; degraded, degraded_rate: answered by a rung of the degradation "
    "ladder, apart from errors; degraded_by_kind and degraded_by_length: the same share of each kind of request and "
    "of each length of prompt",
}


def burst(visits: Sequence[Visit], slo: Slo, window: Burst | None) -> dict[str, Any] | None:
    if window is None:
        return None
    inside = within(visits, window)
    return {
        "offered": len(inside),
        "errors_rate": share(sum(not visit.is_answered for visit in inside), len(inside)),
        "in_slo_rate": share(sum(visit.is_answered and is_good(visit, slo) for visit in inside), len(inside)),
        "degraded": sum(visit.is_degraded for visit in inside),
        "degraded_rate": degraded_rate(inside),
        "degraded_by_kind": {name: degraded_rate(group) for name, group in by_kind(inside).items()},
        "degraded_by_length": {name: degraded_rate(group) for name, group in by_length(inside).items()},
    }


def within(visits: Sequence[Visit], window: Burst) -> list[Visit]:
    return [visit for visit in visits if window.start_s <= visit.demand.at < window.end_s]


def degraded_rate(visits: Sequence[Visit]) -> float:
    return share(sum(visit.is_degraded for visit in visits), len(visits))
