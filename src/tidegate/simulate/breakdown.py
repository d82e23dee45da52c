"""The figures of a run by kind of request and by length of prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidegate.simulate.figures import e2e_s, is_good, p95_s, p95_std_s, share, tokens_of, ttft_s
from tidegate.simulate.scenario import Slo
from tidegate.simulate.visit import Visit

PROMPT_LENGTHS = (512, 1024, 2048, 4096)
"""Upper ends of the buckets, in tokens; one more bucket is above them."""

SCHEMA: dict[str, str] = {
    "classes": "per kind of request of the scenario: offered; in_slo_rate as goodput_requests and in_slo_tokens as "
    "goodput_tokens, of this kind alone; served_rate: the share of them that was answered, late or not; "
    "ttft_p95_s as in ttft_s; e2e_p95_s as in e2e_s; p95_std_s as above",
    "prompt_lengths": "the same per length of the prompt, in tokens: what sheds by length shows here",
}


def classes(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    return {label: _class(group, slo) for label, group in by_kind(visits).items()}


def prompt_lengths(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    return {name: _length(group, slo) for name, group in by_length(visits).items()}


def by_kind(visits: Sequence[Visit]) -> dict[str, list[Visit]]:
    return _groups(visits, lambda visit: visit.demand.label)


def by_length(visits: Sequence[Visit]) -> dict[str, list[Visit]]:
    """The shortest first."""
    groups = _groups(visits, lambda visit: _bucket(visit.demand.prompt_tokens))
    names = [_bucket(end) for end in (*PROMPT_LENGTHS, PROMPT_LENGTHS[-1] + 1)]
    return {name: groups[name] for name in names if name in groups}


def _bucket(prompt_tokens: int) -> str:
    return next((f"<={end}" for end in PROMPT_LENGTHS if prompt_tokens <= end), f">{PROMPT_LENGTHS[-1]}")


def _groups(visits: Sequence[Visit], name: Callable[[Visit], str]) -> dict[str, list[Visit]]:
    found: dict[str, list[Visit]] = {}
    for visit in visits:
        found.setdefault(name(visit), []).append(visit)
    return dict(sorted(found.items()))


def _class(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    answered = [visit for visit in visits if visit.is_answered]
    good = [visit for visit in answered if is_good(visit, slo)]
    return {
        "offered": len(visits),
        "in_slo_rate": share(len(good), len(visits)),
        "in_slo_tokens": share(sum(map(tokens_of, good)), sum(map(tokens_of, visits))),
        "served_rate": share(len(answered), len(visits)),
        "ttft_p95_s": p95_s([*map(ttft_s, answered)]),
        "e2e_p95_s": p95_s([*map(e2e_s, answered)]),
        "p95_std_s": p95_std_s(visits),
    }


def _length(visits: Sequence[Visit], slo: Slo) -> dict[str, Any]:
    answered = [visit for visit in visits if visit.is_answered]
    return {
        "offered": len(visits),
        "in_slo_rate": share(sum(is_good(visit, slo) for visit in answered), len(visits)),
        "served_rate": share(len(answered), len(visits)),
        "ttft_p95_s": p95_s([*map(ttft_s, answered)]),
    }
