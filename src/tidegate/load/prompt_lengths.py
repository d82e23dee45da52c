"""Latency over the length of the prompt (SPEC S2-27): does it grow in a line, or jump?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import floor, log2

from tidegate.load.length_figures import LengthFigures
from tidegate.load.sample import Sample
from tidegate.simulate.quantile import quantile

LEAST_TOKENS = 16
LEAST_ANSWERS = 5
"""Lengths that fewer answers tell about are left out."""


def by_length(samples: Iterable[Sample]) -> list[LengthFigures]:
    """Of answers whose prompt's length is known."""
    buckets: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        tokens = tokens_of(sample)
        if sample.is_answered and tokens > 0:
            buckets[floor(2 * log2(max(tokens, LEAST_TOKENS)))].append(sample)
    return [_figures(part) for _, part in sorted(buckets.items()) if len(part) >= LEAST_ANSWERS]


def tokens_of(sample: Sample) -> int:
    """As the engine counted, else as the workload meant."""
    return sample.prompt_tokens or sample.meant_tokens


def _figures(samples: list[Sample]) -> LengthFigures:
    ttft = sorted(sample.ttft_s for sample in samples if sample.is_stream and sample.first_at)
    e2e = sorted(sample.e2e_s for sample in samples)
    return LengthFigures(
        tokens=sum(map(tokens_of, samples)) / len(samples),
        count=len(samples),
        ttft_p50_s=quantile(ttft, 0.5) if ttft else None,
        ttft_p95_s=quantile(ttft, 0.95) if ttft else None,
        e2e_p50_s=quantile(e2e, 0.5),
        e2e_p95_s=quantile(e2e, 0.95),
    )
