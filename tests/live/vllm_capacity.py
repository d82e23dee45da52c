"""Run by an interpreter that has vLLM: what vLLM itself makes of model configurations and a KV pool.

Each model is built by vLLM's own class on torch's meta device, which allocates nothing, and its layers are asked for
their KV specs. vLLM's own functions then lay them in blocks. One JSON object per case on stdout.

Imports go through importlib, because the type checker of this project has no vLLM at hand.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

COMMON = {"rms_norm_eps": 1e-6, "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1}


def capacity(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Parameters, blocks and concurrency of one case, as vLLM counts them."""
    arguments = importlib.import_module("vllm.engine.arg_utils")
    blocks = importlib.import_module("vllm.v1.core.kv_cache_utils")
    (folder / "config.json").write_text(json.dumps({**COMMON, **case["config"]}))
    engine = arguments.EngineArgs(
        model=str(folder),
        skip_tokenizer_init=True,
        enforce_eager=True,
        load_format="dummy",
        max_model_len=case["max_model_len"],
        block_size=case["block_tokens"],
        max_num_batched_tokens=case["prefill_tokens"],
        kv_cache_dtype=case["kv_dtype"],
    )
    settings = engine.create_engine_config()
    settings.cache_config.kv_cache_layout = "LBNHC"
    parameters, specs = built(settings)
    (laid,) = blocks.get_kv_cache_configs(settings, [specs], [case["pool_bytes"]])
    return {
        "name": case["name"],
        "parameters": parameters,
        "layers": len(specs),
        "groups": len(laid.kv_cache_groups),
        "blocks": laid.num_blocks,
        "concurrency": blocks.get_max_concurrency_for_kv_cache_config(settings, laid),
        "in_flight_tokens": settings.max_in_flight_tokens,
    }


def built(settings: Any) -> tuple[int, dict[str, Any]]:
    """The model on the meta device: how many parameters it has, and the KV spec of each of its layers."""
    torch = importlib.import_module("torch")
    config = importlib.import_module("vllm.config")
    loading = importlib.import_module("vllm.model_executor.model_loader.utils")
    with config.set_current_vllm_config(settings):
        start_alone()
        with torch.device("meta"):
            model = loading.initialize_model(vllm_config=settings)
        layers = settings.compilation_config.static_forward_context
        specs = {name: each.get_kv_cache_spec(settings) for name, each in layers.items() if is_attention(each)}
        return sum(each.numel() for each in model.parameters()), specs


def is_attention(layer: Any) -> bool:
    return hasattr(layer, "get_kv_cache_spec")


def start_alone() -> None:
    """A world of one process; its groups anew for each model, since only those with experts get one for them."""
    distributed = importlib.import_module("vllm.distributed")
    torch = importlib.import_module("torch")
    if torch.distributed.is_initialized():
        distributed.destroy_model_parallel()
    else:
        meeting = Path(tempfile.mkdtemp()) / "meeting"
        distributed.init_distributed_environment(1, 0, f"file://{meeting}", 0, backend="gloo")
    distributed.initialize_model_parallel(1, 1)


def main() -> None:
    for case in json.load(sys.stdin):
        with tempfile.TemporaryDirectory() as folder:
            try:
                told = capacity(case, Path(folder))
            except Exception as error:  # noqa: BLE001  # each case is reported on its own, whatever vLLM raises
                told = {"name": case["name"], "error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(f"CASE {json.dumps(told)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
