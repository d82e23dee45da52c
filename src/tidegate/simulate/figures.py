"""What is measured of one visit, and of a group of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from tidegate.engines.longest_step import middle_ps
from tidegate.engines.step_run import SECONDS_PER_PS
from tidegate.simulate.quantile import quantile
from tidegate.simulate.scenario import Slo
from tidegate.simulate.visit import Visit

STD_WINDOW_S = 10.0
PERCENTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


def ttft_s(visit: Visit) -> float:
    """From the first call to the first token; of an unanswered visit, to the moment it gave up."""
    first = visit.first_token_at if visit.is_answered and visit.first_token_at is not None else visit.ended_at
    return first - visit.demand.at


def tpot_s(visit: Visit) -> float:
    """Mean time per token after the first of an answered visit; 0 for a single token."""
    if visit.first_token_at is None or visit.output_tokens < 2:
        return 0.0
    return (visit.ended_at - visit.first_token_at) / (visit.output_tokens - 1)


def e2e_s(visit: Visit) -> float:
    """From the first call to the last token, or to the moment it gave up."""
    return visit.ended_at - visit.demand.at


def is_good(visit: Visit, slo: Slo) -> bool:
    """Answered in full within the scenario's objectives, or within its own where it has one."""
    demand = visit.demand
    ttft_slo_s = slo.ttft_s if demand.ttft_slo_s is None else demand.ttft_slo_s
    in_time = visit.is_answered and ttft_s(visit) <= ttft_slo_s and tpot_s(visit) <= slo.tpot_s
    is_of_use = demand.worthless_after_s is None or e2e_s(visit) <= demand.worthless_after_s
    return in_time and is_of_use and visit.degraded is None


def tokens_of(visit: Visit) -> int:
    return visit.demand.prompt_tokens + visit.demand.output_tokens


def share(part: float, whole: float) -> float:
    """0 of nothing."""
    return round(part / whole, 6) if whole else 0.0


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    ordered = sorted(values)
    return {name: round(quantile(ordered, part), 4) if ordered else None for name, part in PERCENTILES.items()}


def gap_s(gaps: Mapping[int, int]) -> dict[str, float | None]:
    """Percentiles and the longest of gaps between tokens that were counted in buckets."""
    found: dict[str, float | None] = dict.fromkeys((*PERCENTILES, "max"))
    total, passed, ordered = sum(gaps.values()), 0, sorted(gaps)
    for index in ordered:
        passed += gaps[index]
        value = round(middle_ps(index) * SECONDS_PER_PS, 4)
        for name, part in PERCENTILES.items():
            if found[name] is None and passed >= part * total:
                found[name] = value
        found["max"] = value
    return found


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Percentiles, mean and standard deviation."""
    mean, std = (round(fmean(values), 4), round(pstdev(values), 4)) if values else (None, None)
    return percentiles(values) | {"mean": mean, "std": std}


def p95_s(values: Sequence[float]) -> float | None:
    return round(quantile(sorted(values), 0.95), 4) if values else None


def windows(visits: Sequence[Visit], length_s: float) -> dict[int, list[Visit]]:
    """Visits by the window of their first call, in order of time."""
    found: dict[int, list[Visit]] = {}
    for visit in visits:
        found.setdefault(int(visit.demand.at // length_s), []).append(visit)
    return dict(sorted(found.items()))


def p95_std_s(visits: Sequence[Visit]) -> float | None:
    tails = [quantile(sorted(map(ttft_s, group)), 0.95) for group in windows(visits, STD_WINDOW_S).values()]
    return round(pstdev(tails), 4) if len(tails) > 1 else None
