"""What clients saw, the same for the stepped scheduler and the real server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Stream:
    """One answer; steps where they are known, seconds always."""

    began_s: float
    began_step: int = 0
    first_s: float | None = None
    first_step: int = 0
    last_s: float = 0.0
    last_step: int = 0
    gap_s: float = 0.0
    """Longest silence between two tokens."""
    gap_steps: int = 0
    tokens: int = 0
    preemptions: int = 0
    priority: int = 0

    def token(self, step: int, now_s: float, count: int = 1) -> None:
        if self.first_s is None:
            self.first_s, self.first_step = now_s, step
        else:
            self.gap_s = max(self.gap_s, now_s - self.last_s)
            self.gap_steps = max(self.gap_steps, step - self.last_step)
        self.last_s, self.last_step = now_s, step
        self.tokens += count


def quantiles(values: list[float]) -> dict[str, float]:
    """P50, P95, P99 (the smallest value that is not below the share) and the most."""
    ordered = sorted(values)
    if not ordered:
        return {}
    last = len(ordered) - 1
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {name: round(ordered[min(last, int(share * len(ordered)))], 3) for name, share in shares.items()}
    return found | {"max": round(ordered[-1], 3)}


def summary(streams: list[Stream], wall_s: float) -> dict[str, Any]:
    begun = [each for each in streams if each.first_s is not None]
    tokens = sum(each.tokens for each in begun)
    return {
        "requests": len(streams),
        "tokens": tokens,
        "wall_s": round(wall_s, 2),
        "tokens_per_s": round(tokens / wall_s, 1) if wall_s else 0.0,
        "preemptions": sum(each.preemptions for each in streams),
        "preempted": sum(each.preemptions > 0 for each in streams),
        "gap_steps": quantiles([float(each.gap_steps) for each in begun]),
        "gap_s": quantiles([each.gap_s for each in begun]),
        "ttft_steps": quantiles([float(each.first_step - each.began_step) for each in begun]),
        "ttft_s": quantiles([each.first_s - each.began_s for each in begun if each.first_s is not None]),
        "e2e_s": quantiles([each.last_s - each.began_s for each in begun]),
    }
