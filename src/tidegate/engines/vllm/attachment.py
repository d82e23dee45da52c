"""What of a vLLM scheduler the ledger can vouch for, and how big its pool is.

Typed loosely on purpose: vLLM lives in an environment of its own, and nothing here imports it.
"""

from __future__ import annotations

from typing import Any

from tidegate.engines.vllm.blocks import BlockGroup, BlockLayout
from tidegate.engines.vllm.reservation import Pool, Reservation

NULL_BLOCKS = 1
"""vLLM's block pool keeps one block that no request ever gets."""

KEEPS_ALL = "FullAttentionManager"
"""vLLM's class for layers that keep the KV of every token, MLA among them."""
KEEPS_WINDOW = "SlidingWindowManager"


def unsupported(scheduler: Any, reservation: Reservation) -> str | None:
    """Why the reservation would not hold on this engine, in words; None: it holds.

    Multimodal prompts are fine: their placeholders are tokens of the prompt. So are LoRA, structured output,
    prefix caching and speculative decoding (counted as slack).
    """
    config, managers = scheduler.vllm_config, scheduler.kv_cache_manager.coordinator.single_type_managers
    strange = [name for each in managers if (name := type(each).__name__) not in (KEEPS_ALL, KEEPS_WINDOW)]
    parallel = config.parallel_config
    reasons = {
        "a KV or encoder-cache connector is set: its blocks come back later than the scheduler says": (
            scheduler.connector is not None or scheduler.ec_connector is not None
        ),
        "an encoder-decoder model keeps blocks for cross-attention, which are not counted here": (
            scheduler.is_encoder_decoder
        ),
        "a diffusion model writes and takes back whole canvases": config.model_config.is_diffusion,
        f"layers are kept by {', '.join(sorted(set(strange)))}, which is not counted here": bool(strange),
        "the model keeps no KV in blocks": not managers,
        "prefix hits may end inside a block, which takes one block more": (
            scheduler.kv_cache_manager.coordinator.enable_partial_hash_hits
        ),
        "pauses and pipeline parallelism both set when a request may decode again; use rule worst_case": (
            reservation.rule != "worst_case" and parallel.pipeline_parallel_size > 1
        ),
        "speculation with asynchronous scheduling was never tried with it; add --no-async-scheduling": (
            bool(scheduler.num_spec_tokens) and bool(scheduler.scheduler_config.async_scheduling)
        ),
        "context parallelism was never tried with it": (
            parallel.decode_context_parallel_size > 1 or parallel.prefill_context_parallel_size > 1
        ),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def pool_of(scheduler: Any) -> Pool:
    """Size and shape of the pool. With speculation a step writes what may be thrown away again."""
    manager = scheduler.kv_cache_manager
    spec_tokens = scheduler.num_spec_tokens
    return Pool(
        blocks=manager.block_pool.num_gpu_blocks - NULL_BLOCKS,
        layout=BlockLayout(tuple(_group(each) for each in manager.coordinator.single_type_managers)),
        slack_tokens=scheduler.num_lookahead_tokens + (1 + spec_tokens if spec_tokens else 0),
        longest_tokens=scheduler.max_model_len,
    )


def _group(manager: Any) -> BlockGroup:
    windowed = type(manager).__name__ == KEEPS_WINDOW
    return BlockGroup(manager.block_size, manager.max_admission_blocks_per_request if windowed else None)
