"""Does latency grow with the prompt in a line (SPEC S2-27, S2-54)?

The line is Theil and Sen's (median of the slopes between all pairs; Sen 1968): one length at which latency jumps does
not bend it, and so stands out as a residual, which a least-squares line would share out among all lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from tidegate.load.figure_text import digits, seconds_text
from tidegate.load.length_figures import LengthFigures
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.time_slices import LEAST_FOR_P95
from tidegate.load.verdict import Verdict

LONG_TOKENS = 10_000
NEARLY_LONG = 0.9
LEAST_LENGTHS = 4
MOST_RESIDUAL = 0.15
"""Of the latency at the longest prompts. Growth with the square of the length alone leaves 17 % on equal distances,
the jump from 4.2 s to 7 s that the requirement tells of 40 %."""
NAME = "latency over prompt length"
BAR = f"a line, residuals <= {MOST_RESIDUAL * 100:g} % of the largest"


@dataclass(frozen=True, slots=True)
class Line:
    slope_s: float
    """Per token."""
    start_s: float
    r2: float
    worst_residual: float
    """Share of the largest latency; positive: above the line."""
    worst_tokens: float


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """Of (tokens, seconds); at least two, of different lengths."""
    slope = median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if a[0] != b[0])
    start = median(y - slope * x for x, y in points)
    rest = [(y - start - slope * x, x) for x, y in points]
    worst, tokens = max(rest, key=lambda each: abs(each[0]))
    mean = fmean(y for _, y in points)
    total = sum((y - mean) ** 2 for _, y in points)
    r2 = 1 - sum(each**2 for each, _ in rest) / total if total > 0 else 1.0
    return Line(slope, start, r2, worst / max(y for _, y in points), tokens)


def grows_linearly(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict | None:
    """Only where prompts of about 10 000 tokens were answered."""
    long = [each for each in figures if each.lengths and each.lengths[-1].tokens >= NEARLY_LONG * LONG_TOKENS]
    if not long:
        return None
    found = [(line_through(points), what, each) for each in long for what, points in curves(each.lengths)]
    if not found:
        why = f"answers of {LEAST_LENGTHS} lengths are needed in one phase: mix lengths up to {LONG_TOKENS} tokens"
        return Verdict(name=NAME, row="S2-54", bar=BAR, measured="–", passed=None, why=why)
    line, what, worst = max(found, key=lambda each: abs(each[0].worst_residual))
    slope = seconds_text(line.slope_s * 1000)
    measured = (
        f"{what}: {slope} per 1000 tokens, R² {line.r2:.3f}, worst {line.worst_residual * 100:+.0f} % "
        f"at {digits(line.worst_tokens)} tokens in {worst.phase}"
    )
    passed = abs(line.worst_residual) <= MOST_RESIDUAL
    why = "" if passed else "prefill in one piece, preemption, or a queue behind long prompts?"
    return Verdict(name=NAME, row="S2-54", bar=BAR, measured=measured, passed=passed, why=why)


def must_grow_linearly(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
    """The same where it is what was asked for: a run without long prompts has not shown it."""
    found = grows_linearly(figures, plan)
    if found is not None:
        return found
    why = f"no answers to prompts of about {LONG_TOKENS} tokens: run long-context"
    return Verdict(name=NAME, row="S2-54", bar=BAR, measured="–", passed=None, why=why)


def curves(lengths: Sequence[LengthFigures]) -> list[tuple[str, list[tuple[float, float]]]]:
    """TTFT where there are streams, else E2E; P50, and P95 of those lengths with answers enough for one."""
    streams = [each for each in lengths if each.ttft_p50_s is not None and each.ttft_p95_s is not None]
    title, told = ("TTFT", streams) if streams else ("E2E", list(lengths))
    p50 = [(each.tokens, each.ttft_p50_s if streams else each.e2e_p50_s) for each in told]
    many = [each for each in told if each.count >= LEAST_FOR_P95]
    p95 = [(each.tokens, each.ttft_p95_s if streams else each.e2e_p95_s) for each in many]
    named = ((f"{title} P50", p50), (f"{title} P95", p95))
    solid = [(name, [(x, y) for x, y in points if y is not None]) for name, points in named]
    return [(name, points) for name, points in solid if len(points) >= LEAST_LENGTHS]
