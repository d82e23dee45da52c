"""The figures of a run, and the definition of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Any

from tidegate.simulate import breakdown, burst_figures, memory_figures, promptness, tenant_figures
from tidegate.simulate.baselines.bound import FORMULA
from tidegate.simulate.figures import (
    e2e_s,
    gap_s,
    is_good,
    p95_std_s,
    percentiles,
    share,
    spread,
    tokens_of,
    ttft_s,
    windows,
)
from tidegate.simulate.quantile import quantile
from tidegate.simulate.run import Run
from tidegate.simulate.scenario import Burst, Slo
from tidegate.simulate.visit import Ending, Visit

RECOVERY_WINDOW_S = 1.0

SCHEMA: dict[str, str] = {
    "scenario": "name with its argument",
    "policy": "native: no gateway, round robin, engines first come first served without bound; native:zombie: the same "
    "with engines that do not notice that clients left; native:contiguous: the same with the contiguous "
    "baseline, an allocator without paging; tidegate: this gateway; tidegate:isolated: the same where models "
    "that could share memory each keep to their own part; tidegate:slo: this gateway, which knows the TTFT "
    "objectives; tidegate:KEY=VALUE: with that line in its configuration; cap:TOKENS: vLLM's "
    "--max-num-queued-tokens; static:N: N places per engine and a queue; smg:N: SMG's slots; gradient2: "
    "Netflix Gradient2 on TTFT; llm-d: its saturation gate and deadline order, llm-d:shed with its admitter; "
    "least-tokens: to the engine with the fewest tokens to go, nothing else; bound:fluid: a fluid of the "
    f"saturated rate, first come first served, that refuses what would miss its TTFT objective; {FORMULA}",
    "played": "the policy itself, or of cap:sweep the cap that had most requests in their SLO in this scenario with "
    "the first seed, out of 1000 to 64000 tokens in steps of 1.4 and two more around the best",
    "seed": "equal seeds give equal traffic under every policy, and equal output apart from wall_s",
    "simulated": "always true: step times come from a model, no engine ran",
    "source": "where arrivals and lengths come from",
    "offered": "user requests, however many calls each took; the base of every share below",
    "goodput_requests": "share of offered that was answered in full (not degraded) with TTFT and mean TPOT within "
    "the SLO, the scenario's or, where a kind of request has one, its own (and before the answer is worthless, where "
    "it is at some time); TTFT counts from the user's first call, also when a later call was answered",
    "goodput_tokens": "prompt + output tokens of those requests ÷ prompt + output tokens of all offered requests",
    "errors": "user requests without a complete answer after all calls, by how the last call ended. timeout: the "
    "client left after its patience without a token (or a gateway timeout); refused: the gateway said no; engine: "
    "connection refused, crash or broken stream. total: their sum; rate: total ÷ offered. Clients wait patience_s "
    "per call and call again after 0.5-1.5 s under the same request key; after a refusal they wait for Retry-After "
    "if that is longer (ignored above 60 s, and always in @heedless scenarios), and give up when the gateway says "
    "that coming back is useless",
    "retried_ok": "requests that were answered on a later call than the first; no error, may be in the SLO",
    "degraded": "requests answered by a rung of the degradation ladder; no error, not goodput",
    "rungs": "of those, how many by which rung",
    "preemptions": "sequences that an engine threw out of its KV pool and computed again",
    "ttft_s": "seconds from the user's first call to the first token, of answered requests; quantiles are the "
    "smallest value that the share does not exceed",
    "e2e_s": "seconds from the user's first call to the last token, of answered requests, with mean and standard "
    "deviation",
    "gap_s": "seconds between two tokens of a stream, over all tokens but the first of all streams, in buckets of 1 %, "
    "and max, the longest; of steps in which nothing changes the last stands for all; nulls without an engine",
    "throughput_per_s": "answered requests ÷ seconds from the first call to the last ending",
    "p95_std_s": "population standard deviation over 10-s windows (by first call) of the P95 TTFT in each, in seconds; "
    "an unanswered request counts with the time until it gave up; null with fewer than two windows",
    "jitter_ratio": "P99 ÷ P50 of e2e_s; null when nothing was answered, or by a bound that takes no time",
    "recovery_s": "seconds from the end of the burst to the end of the last 1-s window (by first call, from the start "
    "of the burst on) whose P95 TTFT is above the SLO, an unanswered request counting as above; null without a burst",
    "calm_ratio": "P99 of e2e_s ÷ the mean of the same requests each alone on an idle engine; null unless the scenario "
    "works that out",
    **burst_figures.SCHEMA,
    **promptness.SCHEMA,
    **breakdown.SCHEMA,
    **tenant_figures.SCHEMA,
    **memory_figures.SCHEMA,
    "refusals": "refused calls (not requests) by the gateway's reason",
    "refused_after_s": "seconds from a call to its refusal, over refused calls; nulls without any",
    "wall_s": "seconds that this simulation took, scenario included",
    "notes": "figures computed for the scenario. capacity_per_s: requests a second that the step model's engines "
    "serve with a full queue; SLO and patience",
}


def report(run: Run) -> dict[str, Any]:
    """One JSON-able object; ``SCHEMA`` defines its fields."""
    visits, slo, burst = run.visits, run.scenario.slo, run.scenario.burst
    answered = [visit for visit in visits if visit.is_answered]
    e2e = [*map(e2e_s, answered)]
    good = [visit for visit in answered if is_good(visit, slo)]
    return {
        "scenario": run.scenario.name,
        "policy": run.policy,
        "played": run.played or run.policy,
        "seed": run.seed,
        "simulated": True,
        "source": run.scenario.source,
        "offered": len(visits),
        "goodput_requests": share(len(good), len(visits)),
        "goodput_tokens": share(sum(map(tokens_of, good)), sum(map(tokens_of, visits))),
        "errors": _errors(visits),
        "retried_ok": sum(visit.calls > 1 for visit in answered),
        "degraded": sum(visit.is_degraded for visit in answered),
        "rungs": dict(sorted(Counter(visit.degraded for visit in answered if visit.degraded is not None).items())),
        "preemptions": run.preemptions,
        "ttft_s": percentiles([*map(ttft_s, answered)]),
        "e2e_s": spread(e2e),
        "gap_s": gap_s(run.gaps),
        "throughput_per_s": _throughput_per_s(visits, len(answered)),
        "p95_std_s": p95_std_s(visits),
        "jitter_ratio": _jitter_ratio(sorted(e2e)),
        "recovery_s": None if burst is None else _recovery_s(visits, slo, burst),
        "calm_ratio": _calm_ratio(sorted(e2e), run.scenario.calm_e2e_s),
        "burst": burst_figures.burst(visits, slo, burst),
        "done_in_time": promptness.done_in_time(visits, run.scenario),
        "chains": promptness.chains(visits, run.scenario),
        "classes": breakdown.classes(visits, slo),
        "prompt_lengths": breakdown.prompt_lengths(visits, slo),
        "tenants": tenant_figures.tenants(visits, slo),
        "memory": None if run.watch is None else memory_figures.memory(run.watch),
        "pool": None if run.watch is None else memory_figures.pool(run.watch),
        "refusals": dict(sorted(run.refusals.items())),
        "refused_after_s": percentiles(run.refused_after_s),
        "wall_s": round(run.wall_s, 3),
        "notes": run.scenario.notes | _definitions(run),
    }


def _errors(visits: Sequence[Visit]) -> dict[str, Any]:
    kinds = (Ending.TIMEOUT, Ending.REFUSED, Ending.ENGINE)
    counts: dict[str, Any] = {kind.value: sum(visit.ending is kind for visit in visits) for kind in kinds}
    total = sum(counts.values())
    return counts | {"total": total, "rate": share(total, len(visits))}


def _jitter_ratio(ordered: Sequence[float]) -> float | None:
    middle_s = quantile(ordered, 0.5) if ordered else 0.0
    return round(quantile(ordered, 0.99) / middle_s, 4) if middle_s else None


def _calm_ratio(ordered: Sequence[float], calm_s: float | None) -> float | None:
    return round(quantile(ordered, 0.99) / calm_s, 4) if ordered and calm_s else None


def _throughput_per_s(visits: Sequence[Visit], answered: int) -> float:
    began = min((visit.demand.at for visit in visits), default=0.0)
    ended = max((visit.ended_at for visit in visits), default=0.0)
    return round(answered / (ended - began), 4) if ended > began else 0.0


def _recovery_s(visits: Sequence[Visit], slo: Slo, burst: Burst) -> float:
    last_end = burst.end_s
    for index, group in windows(visits, RECOVERY_WINDOW_S).items():
        start = index * RECOVERY_WINDOW_S
        waits = sorted(ttft_s(visit) if visit.is_answered else inf for visit in group)
        if start >= burst.start_s and quantile(waits, 0.95) > slo.ttft_s:
            last_end = max(last_end, start + RECOVERY_WINDOW_S)
    return round(last_end - burst.end_s, 4)


def _definitions(run: Run) -> dict[str, float]:
    slo = run.scenario.slo
    patience = {visit.demand.patience_s for visit in run.visits}
    return {"slo_ttft_s": slo.ttft_s, "slo_tpot_s": slo.tpot_s, "patience_s": max(patience, default=0.0)}
