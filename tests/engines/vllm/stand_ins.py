"""Objects of the shape that vLLM's scheduler has, where vLLM itself is not installed (tests/live has the real ones)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class FullAttentionManager(SimpleNamespace):
    pass


class SlidingWindowManager(SimpleNamespace):
    pass


class MambaManager(SimpleNamespace):
    pass


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str, *values: object) -> None:
        self.lines.append(text % values)

    warning = info


def keeps(
    kind: Callable[..., Any] = FullAttentionManager, block_tokens: int = 32, most_blocks: int | None = None
) -> Any:
    return kind(block_size=block_tokens, max_admission_blocks_per_request=most_blocks, req_to_blocks={})


def scheduler(*managers: Any, **changed: Any) -> Any:
    """As vLLM's, idle, 80 blocks."""
    parallel = SimpleNamespace(
        pipeline_parallel_size=1, decode_context_parallel_size=1, prefill_context_parallel_size=1
    )
    parallel.__dict__.update(changed.pop("parallel", {}))
    coordinator = SimpleNamespace(
        single_type_managers=list(managers) if managers or changed.pop("no_managers", False) else [keeps()],
        enable_partial_hash_hits=changed.pop("partial_hits", False),
    )
    pool = SimpleNamespace(num_gpu_blocks=81, get_num_free_blocks=lambda: 80)
    usual: dict[str, Any] = {
        "vllm_config": SimpleNamespace(
            parallel_config=parallel, model_config=SimpleNamespace(is_diffusion=changed.pop("is_diffusion", False))
        ),
        "scheduler_config": SimpleNamespace(async_scheduling=changed.pop("async_scheduling", False)),
        "kv_cache_manager": SimpleNamespace(coordinator=coordinator, block_pool=pool),
        "connector": None,
        "ec_connector": None,
        "is_encoder_decoder": False,
        "num_spec_tokens": 0,
        "num_lookahead_tokens": 0,
        "max_model_len": 1024,
        "policy": SimpleNamespace(name="FCFS"),
        "running": [],
        "requests": {},
        "current_step": 0,
    }
    return SimpleNamespace(**{**usual, **changed})


def request(name: str, **changed: Any) -> Any:
    """As vLLM's, waiting."""
    usual = {
        "request_id": name,
        "num_prompt_tokens": 100,
        "num_tokens": 100,
        "num_output_tokens": 0,
        "num_output_placeholders": 0,
        "max_tokens": 200,
        "sampling_params": SimpleNamespace(extra_args=None),
        "priority": 0,
        "arrival_time": 0.0,
        "status": SimpleNamespace(name="WAITING"),
        "next_decode_eligible_step": 0,
    }
    return SimpleNamespace(**{**usual, **changed})
