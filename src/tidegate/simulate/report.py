"""The figures of a run, and the definition of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import pstdev
from typing import Any

from tidegate.simulate import memory_figures
from tidegate.simulate.quantile import quantile
from tidegate.simulate.run import Run
from tidegate.simulate.scenario import Burst, Slo
from tidegate.simulate.visit import Ending, Visit

STD_WINDOW_S = 10.0
RECOVERY_WINDOW_S = 1.0
PERCENTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}

SCHEMA: dict[str, str] = {
    "scenario": "name with its argument",
    "policy": "native: no gateway, round robin, engines first come first served without bound; "
    "native:zombie: the same with engines that do not notice that clients left; native:contiguous: the same with the "
    "contiguous baseline, an allocator without paging; tidegate: this gateway; tidegate:isolated: the same where "
    "models that could share memory each keep to their own part",
    "seed": "equal seeds give equal traffic under every policy, and equal output apart from wall_s",
    "simulated": "always true: step times come from a model, no engine ran",
    "source": "where arrivals and lengths come from",
    "offered": "user requests, however many calls each took; the base of every share below",
    "goodput_requests": "share of offered that was answered in full (not degraded) with TTFT and mean TPOT within "
    "the scenario's SLO; TTFT counts from the user's first call, also when a later call was answered",
    "goodput_tokens": "prompt + output tokens of those requests ÷ prompt + output tokens of all offered requests",
    "errors": "user requests without a complete answer after all calls, by how the last call ended. timeout: the "
    "client left after its patience without a token (or a gateway timeout); refused: the gateway said no; engine: "
    "connection refused, crash or broken stream. total: their sum; rate: total ÷ offered. Clients wait patience_s "
    "per call and call again after 0.5-1.5 s under the same request key; after a refusal they wait for Retry-After "
    "if that is longer (ignored above 60 s, and always in @heedless scenarios), and give up when the gateway says "
    "that coming back is useless",
    "retried_ok": "requests that were answered on a later call than the first; no error, may be in the SLO",
    "degraded": "requests answered by a rung of the degradation ladder; no error, not goodput",
    "preemptions": "sequences that an engine threw out of its KV pool and computed again",
    "ttft_s": "seconds from the user's first call to the first token, of answered requests; quantiles are the "
    "smallest value that the share does not exceed",
    "e2e_s": "seconds from the user's first call to the last token, of answered requests",
    "p95_std_s": "population standard deviation over 10-s windows (by first call) of the P95 TTFT in each, in seconds; "
    "an unanswered request counts with the time until it gave up; null with fewer than two windows",
    "jitter_ratio": "P99 ÷ P50 of e2e_s; null when nothing was answered",
    "recovery_s": "seconds from the end of the burst to the end of the last 1-s window (by first call, from the start "
    "of the burst on) whose P95 TTFT is above the SLO, an unanswered request counting as above; null without a burst",
    "classes": "per kind of request of the scenario: offered; in_slo_rate as goodput_requests; ttft_p95_s as in "
    "ttft_s; p95_std_s as above",
    **memory_figures.SCHEMA,
    "refusals": "refused calls (not requests) by the gateway's reason",
    "wall_s": "seconds that this simulation took, scenario included",
    "notes": "figures computed for the scenario. capacity_per_s: requests a second that the step model's engines "
    "serve with a full queue; SLO and patience",
}


def report(run: Run) -> dict[str, Any]:
    """One JSON-able object; ``SCHEMA`` defines its fields."""
    visits, slo, burst = run.visits, run.scenario.slo, run.scenario.burst
    answered = [visit for visit in visits if visit.is_answered]
    e2e = sorted(visit.ended_at - visit.demand.at for visit in answered)
    good = [visit for visit in answered if is_good(visit, slo)]
    return {
        "scenario": run.scenario.name,
        "policy": run.policy,
        "seed": run.seed,
        "simulated": True,
        "source": run.scenario.source,
        "offered": len(visits),
        "goodput_requests": _share(len(good), len(visits)),
        "goodput_tokens": _share(sum(map(_tokens, good)), sum(map(_tokens, visits))),
        "errors": _errors(visits),
        "retried_ok": sum(visit.calls > 1 for visit in answered),
        "degraded": sum(visit.degraded is not None for visit in answered),
        "preemptions": run.preemptions,
        "ttft_s": _percentiles(sorted(map(ttft_s, answered))),
        "e2e_s": _percentiles(e2e),
        "p95_std_s": _p95_std_s(visits),
        "jitter_ratio": round(quantile(e2e, 0.99) / quantile(e2e, 0.5), 4) if e2e else None,
        "recovery_s": None if burst is None else _recovery_s(visits, slo, burst),
        "classes": _classes(visits, slo),
        "memory": None if run.watch is None else memory_figures.memory(run.watch),
        "pool": None if run.watch is None else memory_figures.pool(run.watch),
        "refusals": dict(sorted(run.refusals.items())),
        "wall_s": round(run.wall_s, 3),
        "notes": run.scenario.notes | _definitions(run),
    }


def ttft_s(visit: Visit) -> float:
    """From the first call to the first token; of an unanswered visit, to the moment it gave up."""
    first = visit.first_token_at if visit.is_answered and visit.first_token_at is not None else visit.ended_at
    return first - visit.demand.at


def tpot_s(visit: Visit) -> float:
    """Mean time per token after the first of an answered visit; 0 for a single token."""
    if visit.first_token_at is None or visit.output_tokens < 2:
        return 0.0
    return (visit.ended_at - visit.first_token_at) / (visit.output_tokens - 1)


def is_good(visit: Visit, slo: Slo) -> bool:
    in_time = visit.is_answered and ttft_s(visit) <= slo.ttft_s and tpot_s(visit) <= slo.tpot_s
    return in_time and visit.degraded is None


def windows(visits: Sequence[Visit], length_s: float) -> dict[int, list[Visit]]:
    """Visits by the window of their first call, in order of time."""
    found: dict[int, list[Visit]] = {}
    for visit in visits:
        found.setdefault(int(visit.demand.at // length_s), []).append(visit)
    return dict(sorted(found.items()))


def _tokens(visit: Visit) -> int:
    return visit.demand.prompt_tokens + visit.demand.output_tokens


def _share(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole else 0.0


def _errors(visits: Sequence[Visit]) -> dict[str, Any]:
    kinds = (Ending.TIMEOUT, Ending.REFUSED, Ending.ENGINE)
    counts: dict[str, Any] = {kind.value: sum(visit.ending is kind for visit in visits) for kind in kinds}
    total = sum(counts.values())
    return counts | {"total": total, "rate": _share(total, len(visits))}


def _percentiles(ordered: Sequence[float]) -> dict[str, float | None]:
    return {name: round(quantile(ordered, share), 4) if ordered else None for name, share in PERCENTILES.items()}


def _p95_std_s(visits: Sequence[Visit]) -> float | None:
    tails = [quantile(sorted(map(ttft_s, group)), 0.95) for group in windows(visits, STD_WINDOW_S).values()]
    return round(pstdev(tails), 4) if len(tails) > 1 else None


def _recovery_s(visits: Sequence[Visit], slo: Slo, burst: Burst) -> float:
    last_end = burst.end_s
    for index, group in windows(visits, RECOVERY_WINDOW_S).items():
        start = index * RECOVERY_WINDOW_S
        waits = sorted(ttft_s(visit) if visit.is_answered else inf for visit in group)
        if start >= burst.start_s and quantile(waits, 0.95) > slo.ttft_s:
            last_end = max(last_end, start + RECOVERY_WINDOW_S)
    return round(last_end - burst.end_s, 4)


def _classes(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    labels = sorted({visit.demand.label for visit in visits})
    return {label: _class([visit for visit in visits if visit.demand.label == label], slo) for label in labels}


def _class(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    waits = sorted(ttft_s(visit) for visit in visits if visit.is_answered)
    return {
        "offered": len(visits),
        "in_slo_rate": _share(sum(is_good(visit, slo) for visit in visits), len(visits)),
        "ttft_p95_s": round(quantile(waits, 0.95), 4) if waits else None,
        "p95_std_s": _p95_std_s(visits),
    }


def _definitions(run: Run) -> dict[str, float]:
    slo = run.scenario.slo
    patience = {visit.demand.patience_s for visit in run.visits}
    return {"slo_ttft_s": slo.ttft_s, "slo_tpot_s": slo.tpot_s, "patience_s": max(patience, default=0.0)}
