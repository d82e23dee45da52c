"""What each tenant got, and how far the worst served fell behind its share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.simulate.figures import e2e_s, is_good, p95_s, share, ttft_s
from tidegate.simulate.scenario import Slo
from tidegate.simulate.visit import Visit

FAIR_WINDOW_S = 10.0
LEAST_VISITS = 50
"""A tenant with fewer has no P95 of its own."""

SCHEMA: dict[str, str] = {
    "tenants": "null unless there are several. count; worst_gap_tokens: over windows of 10 s and the tenants that had "
    "a request without a first token all through one (repeated calls do not count), how much less than their mean the "
    "worst served got, in prompt tokens that reached their first token; null when no two ever were; "
    "longest_prompt_tokens, to compare that with; each: of tenants with at least 50 requests, offered, in_slo_rate, "
    "served_tokens (prompts that were answered), ttft_p95_s and e2e_p95_s as above",
}

Span = tuple[float, float]


def tenants(visits: Sequence[Visit], slo: Slo) -> dict[str, Any] | None:
    groups: dict[str, list[Visit]] = {}
    for visit in visits:
        groups.setdefault(visit.demand.tenant, []).append(visit)
    if len(groups) < 2:
        return None
    return {
        "count": len(groups),
        "worst_gap_tokens": _worst_gap_tokens([*groups.values()]),
        "longest_prompt_tokens": max(visit.demand.prompt_tokens for visit in visits),
        "each": {name: _tenant(group, slo) for name, group in sorted(groups.items()) if len(group) >= LEAST_VISITS},
    }


def _tenant(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    answered = [visit for visit in visits if visit.is_answered]
    return {
        "offered": len(visits),
        "in_slo_rate": share(sum(is_good(visit, slo) for visit in answered), len(visits)),
        "served_tokens": sum(visit.demand.prompt_tokens for visit in answered),
        "ttft_p95_s": p95_s([*map(ttft_s, answered)]),
        "e2e_p95_s": p95_s([*map(e2e_s, answered)]),
    }


def _worst_gap_tokens(groups: list[list[Visit]]) -> float | None:
    by_window: dict[int, list[int]] = {}
    for group in groups:
        served = _served_tokens(group)
        for begin_s, end_s in _backlog(group):
            first, after = int(-(-begin_s // FAIR_WINDOW_S)), int(end_s // FAIR_WINDOW_S)
            for window in range(first, after):
                by_window.setdefault(window, []).append(served.get(window, 0))
    gaps = [sum(got) / len(got) - min(got) for got in by_window.values() if len(got) > 1]
    return round(max(gaps), 1) if gaps else None


def _served_tokens(visits: Sequence[Visit]) -> dict[int, int]:
    """Prompt tokens by the window in which their first token came."""
    found: dict[int, int] = {}
    for visit in visits:
        if visit.first_token_at is not None:
            window = int(visit.first_token_at // FAIR_WINDOW_S)
            found[window] = found.get(window, 0) + visit.demand.prompt_tokens
    return found


def _backlog(visits: Sequence[Visit]) -> list[Span]:
    """When at least one request had no first token yet."""
    waits = sorted(
        (visit.demand.at, visit.ended_at if visit.first_token_at is None else visit.first_token_at)
        for visit in visits
        if visit.calls == 1
    )
    found: list[Span] = []
    for begin_s, end_s in waits:
        if found and begin_s <= found[-1][1]:
            found[-1] = found[-1][0], max(end_s, found[-1][1])
        else:
            found.append((begin_s, end_s))
    return found
