"""Step costs read off a load run in one go, by least squares: where a search for better ones begins.

Two kinds of spans have a length that is a sum of costs. While an answer of n tokens decodes there are n - 1 steps, each
with one token of every sequence that decodes; while a prompt is computed there are as many steps as it has chunks.
What shares those steps (sequences, context, other prompts) is averaged over the span, which is an approximation; the
search that follows plays the whole engine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from operator import mul
from statistics import median

from tidegate.simulate.least_squares import USUAL, normal, solve
from tidegate.simulate.load_row import LoadRow

COSTS = 6
"""Columns: fixed, prefill, sequence, context, quadratic, overhead."""
REWEIGHED = 5
"""Times that what fits badly is weighed less, and all is solved again."""
LEAST_S = 1e-3

Columns = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """``duration_s`` = the sum of ``columns`` times the costs in seconds."""

    columns: Columns
    duration_s: float


def first_costs(rows: Sequence[LoadRow], max_sequences: int, chunk_tokens: int) -> list[Columns]:
    """Two guesses, in seconds: fixed, per prompt token, per sequence, per KV token read, per pair of prompt tokens; and
    overhead. One by least squares, and one that looks at middles alone and is right where a machine stalls often.

    ``rows`` are streams of one engine in order of arrival.
    """
    spans = _spans(rows, max_sequences, chunk_tokens)
    # A span much shorter than others is mostly the error of where it was cut.
    usual_s = median(span.duration_s for span in spans)
    found = [0.0] * COSTS
    weights = [1.0] * len(spans)
    for _ in range(REWEIGHED):
        scaled = [[column / (span.duration_s + usual_s) for column in span.columns] for span in spans]
        values = [span.duration_s / (span.duration_s + usual_s) for span in spans]
        found = solve(*normal(scaled, list(zip(values, weights, strict=True))), [0.0] * COSTS)
        left = [value - sum(map(mul, row, found)) for row, value in zip(scaled, values, strict=True)]
        weights = [1 / (USUAL + abs(each)) for each in left]
    return [tuple(found), _middles(rows)]


def _middles(rows: Sequence[LoadRow]) -> Columns:
    """As if no prompt met another request: half of a token's time is the step's, half the sequence's."""
    tokens_s = [tpot_s for row in rows if (tpot_s := row.tpot_s) is not None]
    per_token_s = sorted(tokens_s)[len(tokens_s) // 4] if tokens_s else LEAST_S
    per_prompt_s = sorted(row.ttft_s / row.prompt_tokens for row in rows)[len(rows) // 4]
    return (per_token_s / 2, per_prompt_s, per_token_s / 2, 0.0, 0.0, 0.0)


def _spans(rows: Sequence[LoadRow], max_sequences: int, chunk_tokens: int) -> list[Span]:
    begun = _beginnings(rows, max_sequences)
    order = sorted(range(len(rows)), key=lambda index: begun[index])
    starts = [begun[index] for index in order]
    longest_s = max(row.last_at - begin for row, begin in zip(rows, begun, strict=True))
    found = []
    for index, row in enumerate(rows):
        near = order[bisect_left(starts, begun[index] - longest_s) : bisect_left(starts, row.last_at)]
        others = [(rows[each], begun[each]) for each in near if each != index]
        found.append(_prompt_span(row, begun[index], others, chunk_tokens))
        if row.output_tokens > 1 and row.last_at > row.first_at:
            found.append(_decode_span(row, others))
    return [span for span in found if span.duration_s > 0]


def _beginnings(rows: Sequence[LoadRow], max_sequences: int) -> list[float]:
    """When each prompt can have begun: sent, a place free, and the prompt before it done."""
    ends: list[float] = []
    begun = []
    prompt_done_at = 0.0
    for row in rows:
        free_at = 0.0
        if len(ends) >= max_sequences:
            free_at = heapreplace(ends, row.last_at)
        else:
            heappush(ends, row.last_at)
        begun.append(min(row.first_at, max(row.at, free_at, min(prompt_done_at, row.first_at))))
        prompt_done_at = max(prompt_done_at, row.first_at)
    return begun


def _prompt_span(row: LoadRow, begun: float, others: list[tuple[LoadRow, float]], chunk_tokens: int) -> Span:
    sequences, context, prompt = _beside(begun, row.first_at, others)
    steps = max(1.0, -(-(row.prompt_tokens + prompt) // chunk_tokens))
    waited = 0.0 if begun > row.at else 1.0
    pairs = row.prompt_tokens * row.prompt_tokens / 2
    columns = (
        steps,
        row.prompt_tokens + prompt,
        steps * (1 + sequences) + prompt / chunk_tokens,
        steps * context,
        pairs,
        waited,
    )
    return Span(columns, row.first_at - begun)


def _decode_span(row: LoadRow, others: list[tuple[LoadRow, float]]) -> Span:
    sequences, context, prompt = _beside(row.first_at, row.last_at, others)
    steps = row.output_tokens - 1
    mine = row.prompt_tokens + row.output_tokens / 2
    columns = (float(steps), prompt, steps * (1 + sequences), steps * (mine + context), 0.0, 0.0)
    return Span(columns, row.last_at - row.first_at)


def _beside(start: float, end: float, others: list[tuple[LoadRow, float]]) -> tuple[float, float, float]:
    """Mean number of other decoding sequences, mean of their tokens, and prompt tokens computed, in a span of time."""
    span_s = max(end - start, 1e-9)
    sequences = context = prompt = 0.0
    for other, begun in others:
        decoding = _overlap(start, end, other.first_at, other.last_at) / span_s
        sequences += decoding
        context += decoding * (other.prompt_tokens + other.output_tokens / 2)
        prefill_s = other.first_at - begun
        if prefill_s > 0:
            prompt += other.prompt_tokens * _overlap(start, end, begun, other.first_at) / prefill_s
    return sequences, context, prompt


def _overlap(start: float, end: float, other_start: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(start, other_start))
