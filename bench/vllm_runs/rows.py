"""What is compared: vLLM as it is, its own two remedies swept, and our rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PLUGIN = "tidegate.engines.vllm.scheduler.ReservingScheduler"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    engine: dict[str, Any] = field(default_factory=dict)
    """Of ``stepping.Engine``."""
    warm: int = 0
    """Uncounted loads before it, of other seeds."""


def _ours(name: str, warm: int = 0, **tidegate: Any) -> Row:
    return Row(name, {"scheduler": PLUGIN, "tidegate": tidegate}, warm)


NATIVE = Row("native")
WORST_CASE = _ours("worst_case", rule="worst_case")
PEAK = _ours("peak, declared")
LEARNED_COLD = _ours("peak, learned, cold", lengths="learned")
LEARNED = _ours("peak, learned, warm", 1, lengths="learned")
GUARANTEED = _ours("same, guaranteed q .75", 1, lengths="learned", guaranteed=True, quantile=0.75)

ROWS = (
    NATIVE,
    *(Row(f"watermark {share:.2f}", {"watermark": share}) for share in (0.05, 0.10, 0.15, 0.20, 0.25)),
    *(Row(f"max-num-seqs {count}", {"max_num_seqs": count}) for count in (6, 8, 10)),
    WORST_CASE,
    PEAK,
    LEARNED_COLD,
    LEARNED,
    GUARANTEED,
)
