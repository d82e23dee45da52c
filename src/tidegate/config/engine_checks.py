"""What contradicts itself in the section of an engine that Tidegate starts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path as FilePath

from tidegate.config.origin import Path
from tidegate.config.problem import Problem
from tidegate.config.started_engines import Embedded, Engine, Vllm

EXTRA_TAKEN = {
    "--model": "model",
    "--served-model-name": "the upstream's name",
    "--host": "always loopback",
    "--port": "chosen at start",
    "--dtype": "dtype",
    "--max-model-len": "context_tokens",
    "--max-num-seqs": "sequences",
    "--kv-cache-memory-bytes": "kv_bytes",
    "--num-gpu-blocks-override": "kv_blocks",
    "--block-size": "block_tokens",
    "--scheduler-cls": "reservation",
    "--additional-config": "reservation",
    "--scheduling-policy": "priority",
    "--api-key": "made at start",
}
"""Flags that Tidegate writes itself, and what decides them."""


def engine_problems(engine: Engine, here: Path) -> Iterator[Problem]:
    """Every contradiction in values that are sound one by one."""
    if isinstance(engine, Embedded):
        if engine.model_path is not None and not FilePath(engine.model_path).is_file():
            yield Problem((*here, "model_path"), f"there is no file {engine.model_path}")
        return
    yield from _places(engine, here)
    yield from _pool(engine, here)
    yield from _bounds(engine, here)


def _places(engine: Vllm, here: Path) -> Iterator[Problem]:
    if engine.python is not None and shutil.which(engine.python) is None:
        yield Problem((*here, "python"), f"there is no interpreter {engine.python}")
    folder = FilePath(engine.model)
    # A name such as org/model is looked up in the hub's cache by vLLM itself.
    if (engine.model[0] in "/.~" or folder.is_dir()) and not (folder / "config.json").is_file():
        yield Problem((*here, "model"), f"there is no checkpoint in {engine.model} (no config.json)")
    gpus = engine.tensor_parallel * engine.pipeline_parallel
    if engine.devices and len(engine.devices) < gpus:
        yield Problem(
            (*here, "devices"),
            f"names {len(engine.devices)} for tensor_parallel × pipeline_parallel = {gpus}",
            also=((*here, "tensor_parallel"), (*here, "pipeline_parallel")),
        )


def _pool(engine: Vllm, here: Path) -> Iterator[Problem]:
    if engine.kv_bytes is None and engine.kv_blocks is None:
        also = ((*here, "kv_bytes"), (*here, "kv_blocks"))
        yield Problem(here, "give the KV pool, as kv_bytes (of each GPU) or as kv_blocks", also=also)
    elif engine.kv_bytes is not None and engine.kv_blocks is not None:
        yield Problem((*here, "kv_blocks"), "kv_bytes is given too; keep one")
    if engine.kv_blocks is None:
        return
    if engine.block_tokens is None:
        yield Problem((*here, "kv_blocks"), "needs block_tokens", also=((*here, "block_tokens"),))
    elif engine.kv_blocks * engine.block_tokens < engine.context_tokens:
        held = engine.kv_blocks * engine.block_tokens
        yield Problem(
            (*here, "kv_blocks"),
            f"{engine.kv_blocks} blocks hold {held} tokens, less than one context of {engine.context_tokens}",
            also=((*here, "block_tokens"), (*here, "context_tokens")),
        )


def _bounds(engine: Vllm, here: Path) -> Iterator[Problem]:
    queued, sequences = engine.queued_requests, engine.sequences
    if queued is not None and sequences is not None and queued < sequences:
        yield Problem(
            (*here, "queued_requests"),
            f"{queued} running and waiting requests are fewer than {sequences} sequences",
            also=((*here, "sequences"),),
        )
    if engine.can_sleep and engine.device == "cpu":
        yield Problem((*here, "can_sleep"), "vLLM has no sleep mode on a CPU", also=((*here, "device"),))
    for index, flag in enumerate(engine.extra):
        name = flag.partition("=")[0]
        if name in EXTRA_TAKEN:
            yield Problem((*here, "extra", index), f"{name} is decided elsewhere ({EXTRA_TAKEN[name]})")
