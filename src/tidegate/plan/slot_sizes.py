"""Which slot size suits a traffic.

    slot = KV of the P95 length × 1.2, in whole blocks (SPEC S0-19); longer requests take several slots

A request holds ⌈(prompt + output) ÷ slot tokens⌉ slots. What it holds and does not fill is the internal waste of
that size, 1 - used ÷ reserved (SPEC S0-22), counted here with the lengths that requests really had. A gateway that
does not know the output reserves the bound instead; that waste is given beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.plan.footprint import Footprint, recommended_sequences, slots_in
from tidegate.plan.gpus import MIB
from tidegate.plan.paging import BLOCK_TOKENS
from tidegate.plan.traffic import LENGTH_FACTOR, Traffic, whole_blocks
from tidegate.simulate.quantile import quantile

QUANTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
LEDGER_SLOT_TOKENS = 256
"""The gateway's own default for engines whose KV size per token is not known."""
LONG_QUANTILE = 0.95
MOST_WASTE = 0.10
"""Of an economical slot size."""
BOUND_STEP_TOKENS = 64

SCHEMA: dict[str, str] = {
    "source": "the file",
    "form": "how it was read",
    "requests": "answered requests in it; every figure below is over these",
    "skipped": "lines without both lengths, or of requests without an answer",
    "lengths": "tokens: prompt, output, and total (their sum per request); each with mean, max and quantiles, "
    "which are the smallest length that the share does not exceed",
    "slot_tokens": "P95 of total × 1.2, rounded up to whole blocks (SPEC S0-19)",
    "slot_mib": "its KV memory on one GPU; null without a model",
    "slots": "KV pool of one GPU ÷ slot, rounded down; null without a model and a GPU",
    "economical_slot_tokens": "the largest compared size that wastes at most 10 %: several small slots per request "
    "hold more requests than one large one; the smallest size if none does",
    "recommended_max_num_seqs": "80 % of the requests that the pool holds at once in economical slots, rounded down; "
    "null without a model and a GPU (of slots that hold one request each it is the rule of SPEC S0-15)",
    "internal_waste": "1 - used ÷ reserved KV at that slot size, each request holding the slots of its real length "
    "(SPEC S0-22)",
    "sizes[]": "the same for other sizes, by slot_tokens: slot_mib, slots; slots_per_request (mean); in_one_slot, the "
    "share of requests that fit one slot; internal_waste; bound_waste, the waste when each request reserves its "
    "prompt + default_max_tokens, as the gateway does for requests that set no bound; concurrent, slots ÷ "
    "slots_per_request, and concurrent_bound, the same with the bound reserved",
    "default_max_tokens": "P99 of outputs × 1.2, rounded up to 64: a bound that cuts fewer than 1 % of the answers; "
    "for slots.default_max_tokens",
    "long_threshold_tokens": "P95 of prompts, rounded up to whole blocks: prompts above it are class long; for "
    "shaping.long_threshold_tokens",
    "max_model_len": "P99 of total × 1.2, rounded up to whole blocks (SPEC S3-52); not above what the model allows",
    "advice[]": "what the comparison comes to",
    "settings": "the lines for tidegate.yaml, by key, with the economical slot size",
}


@dataclass(frozen=True, slots=True)
class SlotSize:
    """One slot size under a traffic."""

    slot_tokens: int
    slots_per_request: float
    in_one_slot: float
    """Share of requests."""
    internal_waste: float
    bound_waste: float
    bound_slots_per_request: float


def recommended_slot_tokens(traffic: Traffic, block_tokens: int = BLOCK_TOKENS) -> int:
    """P95 length × 1.2 in whole blocks (SPEC S0-19)."""
    return whole_blocks(quantile(traffic.totals, 0.95) * LENGTH_FACTOR, block_tokens)


def default_max_tokens(traffic: Traffic) -> int:
    """An output bound that cuts fewer than 1 % of the answers."""
    return whole_blocks(quantile(traffic.outputs, 0.99) * LENGTH_FACTOR, BOUND_STEP_TOKENS)


def long_threshold_tokens(traffic: Traffic, block_tokens: int = BLOCK_TOKENS) -> int:
    """Prompts above it are the long twentieth."""
    return whole_blocks(quantile(traffic.prompts, LONG_QUANTILE), block_tokens)


def slot_size(traffic: Traffic, slot_tokens: int, bound_tokens: int) -> SlotSize:
    """What slots of that size cost this traffic."""
    held = bound_held = used = in_one = 0
    for prompt, output in traffic.requests:
        slots = -(-(prompt + output) // slot_tokens)
        held += slots
        bound_held += -(-(prompt + max(output, bound_tokens)) // slot_tokens)
        used += prompt + output
        in_one += slots == 1
    count = len(traffic.requests)
    return SlotSize(
        slot_tokens,
        held / count,
        in_one / count,
        1 - used / (held * slot_tokens),
        1 - used / (bound_held * slot_tokens),
        bound_held / count,
    )


def compared_sizes(traffic: Traffic, footprint: Footprint | None, block_tokens: int) -> list[int]:
    """Slot sizes worth comparing, in tokens: a block, the ledger's, half and all of the recommended one, what
    --slot-mib holds, and the longest request."""
    recommended = recommended_slot_tokens(traffic, block_tokens)
    sizes = {
        block_tokens,
        LEDGER_SLOT_TOKENS,
        whole_blocks(recommended / 2, block_tokens),
        recommended,
        whole_blocks(traffic.totals[-1], block_tokens),
    }
    if footprint is not None:
        sizes.add(footprint.slot_tokens)
    return sorted(sizes)


def report(traffic: Traffic, footprint: Footprint | None, block_tokens: int = BLOCK_TOKENS) -> dict[str, Any]:
    """One JSON-able object; ``SCHEMA`` defines its fields. ``footprint`` is of the GPU that serves, if known."""
    bound, threshold = default_max_tokens(traffic), long_threshold_tokens(traffic, block_tokens)
    rows = {
        tokens: _row(slot_size(traffic, tokens, bound), footprint)
        for tokens in compared_sizes(traffic, footprint, block_tokens)
    }
    chosen = rows[recommended_slot_tokens(traffic, block_tokens)]
    economical = _economical(list(rows.values()))
    concurrent = economical["concurrent"]
    return {
        "source": traffic.source,
        "form": traffic.form,
        "requests": len(traffic.requests),
        "skipped": traffic.skipped,
        "lengths": {
            "prompt": _lengths(traffic.prompts),
            "output": _lengths(traffic.outputs),
            "total": _lengths(traffic.totals),
        },
        "slot_tokens": chosen["slot_tokens"],
        "slot_mib": chosen["slot_mib"],
        "slots": chosen["slots"],
        "internal_waste": chosen["internal_waste"],
        "economical_slot_tokens": economical["slot_tokens"],
        "recommended_max_num_seqs": None if concurrent is None else recommended_sequences(concurrent),
        "sizes": list(rows.values()),
        "default_max_tokens": bound,
        "long_threshold_tokens": threshold,
        "max_model_len": max_model_len(traffic, footprint, block_tokens),
        "advice": _advice(chosen, economical),
        "settings": {
            "slots.default_max_tokens": bound,
            "shaping.long_threshold_tokens": threshold,
            "upstreams.<model>.replicas[].slot_tokens": economical["slot_tokens"],
        },
    }


def _economical(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """``rows`` ascend by slot size."""
    return next((row for row in reversed(rows) if row["internal_waste"] <= MOST_WASTE), rows[0])


def _advice(chosen: dict[str, Any], economical: dict[str, Any]) -> list[str]:
    if economical["slot_tokens"] >= chosen["slot_tokens"]:
        return []
    gain = (1 - economical["internal_waste"]) / (1 - chosen["internal_waste"])
    wastes = f"{economical['internal_waste']:.0%} where those of P95 × 1.2 waste {chosen['internal_waste']:.0%}"
    sentence = (
        f"slots of {economical['slot_tokens']} tokens waste {wastes}: the same memory holds {gain:.1f} × the requests, "
        "since one that is long takes several slots"
    )
    return [sentence]


def max_model_len(traffic: Traffic, footprint: Footprint | None, block_tokens: int = BLOCK_TOKENS) -> int:
    """P99 × 1.2 (SPEC S3-52), but not above what the model was made for."""
    wanted = traffic.max_model_len(block_tokens)
    most = footprint.model.context_tokens if footprint is not None else 0
    return min(wanted, most) if most else wanted


def _lengths(ordered: Sequence[int]) -> dict[str, float]:
    found: dict[str, float] = {"mean": sum(ordered) / len(ordered)}
    found |= {name: quantile(ordered, share) for name, share in QUANTILES.items()}
    return found | {"max": ordered[-1]}


def _row(size: SlotSize, footprint: Footprint | None) -> dict[str, Any]:
    slot_bytes = None if footprint is None else size.slot_tokens * footprint.token_bytes
    slots = None if footprint is None or slot_bytes is None else slots_in(footprint.pool_bytes, slot_bytes)
    return {
        "slot_tokens": size.slot_tokens,
        "slot_mib": None if slot_bytes is None else slot_bytes / MIB,
        "slots": slots,
        "slots_per_request": size.slots_per_request,
        "in_one_slot": size.in_one_slot,
        "internal_waste": size.internal_waste,
        "bound_waste": size.bound_waste,
        "concurrent": None if slots is None else int(slots / size.slots_per_request),
        "concurrent_bound": None if slots is None else int(slots / size.bound_slots_per_request),
    }
