"""Detection and recovery, read from what clients saw. Pure: samples in, seconds out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.load.client_outcome import ERRORS
from tidegate.load.sample import Sample
from tidegate.simulate.quantile import quantile

SLICE_S = 2.0
SLOWER = 2.0
"""P95 of a slice within so many times that of the baseline is back at it: a slice holds few requests."""
MARGIN_S = 0.5
"""Of scheduling on a busy machine, above that."""
LATE = 3.0
"""An answer slower than so many times the baseline's P95 is late (as P95 <= 3 x P50 of SPEC S1-47)."""


def is_failed(sample: Sample) -> bool:
    return sample.outcome in ERRORS


def p95_s(samples: Iterable[Sample]) -> float | None:
    """Of answers, from when they were due."""
    ordered = sorted(each.scheduled_e2e_s for each in samples if each.is_answered)
    return quantile(ordered, 0.95) if ordered else None


def error_share(samples: Sequence[Sample]) -> float | None:
    return sum(map(is_failed, samples)) / len(samples) if samples else None


def between(samples: Iterable[Sample], from_at: float, to_at: float) -> list[Sample]:
    """Those that were due in it."""
    return [each for each in samples if from_at <= each.due_at < to_at]


def detected_s(samples: Iterable[Sample], broken_at: float, healed_at: float) -> float | None:
    """Until the last request that failed was due; 0: none failed. None: there were too few after it to say that it was
    the last, so it failed until it was healed."""
    during = sorted(between(samples, broken_at, healed_at), key=lambda each: each.due_at)
    failed = [index for index, each in enumerate(during) if is_failed(each)]
    if not failed:
        return 0.0 if during else None
    return None if failed[-1] == len(during) - 1 else during[failed[-1]].due_at - broken_at


def recovered_s(samples: Iterable[Sample], healed_at: float, ended_at: float, baseline_s: float | None) -> float | None:
    """Until the end of the last slice with an error or a P95 above the baseline's; 0: there was none. None: it is the
    last one that we looked at, or there is no baseline."""
    if baseline_s is None:
        return None
    bound_s = SLOWER * baseline_s + MARGIN_S
    after = between(samples, healed_at, ended_at)
    slices = int((ended_at - healed_at) / SLICE_S)
    bad = [index for index in range(slices) if _is_bad(_slice(after, healed_at, index), bound_s)]
    if not slices or (bad and bad[-1] == slices - 1):
        return None
    return (bad[-1] + 1) * SLICE_S if bad else 0.0


def late_count(samples: Iterable[Sample], baseline_s: float | None) -> int:
    if baseline_s is None:
        return 0
    bound_s = max(LATE * baseline_s, baseline_s + MARGIN_S)
    return sum(each.is_answered and each.scheduled_e2e_s > bound_s for each in samples)


def moments(samples: Sequence[Sample], ended_at: float) -> list[tuple[float, int, int, float | None]]:
    """By second: when it began, answers, errors, P95 of what was due in it."""
    found = []
    for second in range(int(ended_at) + 1):
        due = between(samples, second, second + 1)
        found.append((float(second), sum(each.is_answered for each in due), sum(map(is_failed, due)), p95_s(due)))
    return found


def _slice(samples: Iterable[Sample], from_at: float, index: int) -> list[Sample]:
    return between(samples, from_at + index * SLICE_S, from_at + (index + 1) * SLICE_S)


def _is_bad(samples: Sequence[Sample], bound_s: float) -> bool:
    p95 = p95_s(samples)
    return any(map(is_failed, samples)) or (p95 is not None and p95 > bound_s)
