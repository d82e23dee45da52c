"""How a vLLM server is started: every flag that matters to stability, said and not left to a default (SPEC S3-29)."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.engines.vllm.reservation import Reservation
from tidegate.engines.vllm.versions import TESTED, why_not
from tidegate.errors import EngineError

MODULE = "vllm.entrypoints.openai.api_server"
"""Has the flags of ``vllm serve``, whose command line fails where the package is not named vllm (CPU builds)."""
PLUGIN = "tidegate.engines.vllm.scheduler"

QUIET_SINCE = (0, 10)
"""Requests are not logged by default; before, ``--disable-log-requests`` said so, which is refused since (S3-30)."""
FLAG_KNOWN_SINCE = {
    "--kv-cache-memory-bytes": (0, 11),
    "--max-num-queued-reqs": (0, 32),
    "--max-num-queued-tokens": (0, 32),
    "--shutdown-timeout": (0, 32),
}
"""Oldest version that is known to have it; asking an older one for it is refused before the start."""

DTYPES = ("bfloat16", "float16", "float32")


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmCommand:
    """One server. Raises EngineError where it could not start, or would not do what is said here."""

    model: str
    """Folder of the checkpoint, or its name in the local hub cache."""
    dtype: str
    """That of the checkpoint (``checkpoint.dtype_of``): another may overflow, and ``auto`` may change (S3-31)."""
    served_name: str
    port: int
    context_tokens: int
    """--max-model-len: prompt and output of one sequence (S3-52: P99 of the real lengths × 1.2)."""
    sequences: int
    """--max-num-seqs: 0.8 × what the pool holds (S0-104)."""
    kv_bytes: int | None = None
    """KV pool of each GPU. This or ``kv_blocks`` is given: a pool that is measured differs from start to start."""
    kv_blocks: int | None = None
    """KV pool in blocks that requests can get; vLLM's own null block is added."""
    block_tokens: int | None = None
    """None: what vLLM chooses for the device (16 on most GPUs, 128 on a CPU)."""
    batch_tokens: int | None = None
    """--max-num-batched-tokens: a prefill step of so many tokens is the longest gap of every stream beside it."""
    memory_share: float | None = 0.86
    """--gpu-memory-utilization (S3-51). None on a CPU."""
    host_kv_gib: int | None = None
    """VLLM_CPU_KVCACHE_SPACE: on a CPU, host memory that holds the pool."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    prefix_caching: bool = True
    """The flag behind VLLM_ENABLE_PREFIX_CACHING, which vLLM itself does not read (S0-82)."""
    orders_by_priority: bool = True
    """Requests carry their service class as ``priority`` (S3-04)."""
    queued_requests: int | None = None
    """Running and waiting. More get 503 from vLLM at once: the second line behind our own queue."""
    queued_tokens: int | None = None
    default_max_tokens: int | None = None
    """Bound of requests that set none, should one come past the gateway; else it is the whole context."""
    reservation: Reservation | None = field(default_factory=Reservation)
    """None: vLLM schedules as it does."""
    drain_s: int = 30
    """How long running requests may finish after SIGTERM; vLLM's own default cuts them off at once."""
    is_asynchronous: bool = True
    """Scheduling overlaps the GPU's step. A CPU does not support it."""
    can_sleep: bool = False
    host: str = "127.0.0.1"
    python: str = "python"
    """Interpreter of vLLM's own environment, where Tidegate is installed too (``pip install --no-deps tidegate``)."""
    version: str = TESTED[0]
    """Of the vLLM there (``installed_version``)."""
    devices: tuple[str, ...] = ()
    """CUDA_VISIBLE_DEVICES, by UUID so that a restart cannot change the card (S3-33). Empty: as they are."""
    cpus: str = ""
    """Cores of its processes, such as ``8-15`` (S0-88)."""
    api_key: str = field(default="", repr=False)
    extra: tuple[str, ...] = ()
    """More flags, as they are."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem is not None:
            raise EngineError(f"vLLM {self.version} for {self.served_name}: {problem}")

    @property
    def warning(self) -> str | None:
        """For the start log at ERROR: the engine will run, without what was asked for."""
        return None if self.reservation is None else why_not(self.version, self.reservation.unknown_version)

    def arguments(self) -> tuple[str, ...]:
        """The whole command."""
        pinned = ("taskset", "-c", self.cpus) if self.cpus else ()
        flags = (*self._model(), *self._memory(), *self._admission(), *self._scheduler(), *self.extra)
        return (*pinned, self.python, "-m", MODULE, *flags)

    def environment(self) -> dict[str, str]:
        """Added to that of the process. Keys stand here because a process list shows arguments."""
        env = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        if self.host_kv_gib is not None:
            env["VLLM_CPU_KVCACHE_SPACE"] = str(self.host_kv_gib)
        if self.can_sleep:
            # vLLM has /sleep and /wake_up only then. It listens on loopback or a private address.
            env["VLLM_SERVER_DEV_MODE"] = "1"
        if self.devices:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(self.devices)
        if self.api_key:
            env["VLLM_API_KEY"] = self.api_key
        return env

    def _model(self) -> tuple[str, ...]:
        quiet = () if release(self.version) >= QUIET_SINCE else ("--disable-log-requests",)
        return (
            *("--model", self.model, "--served-model-name", self.served_name, "--dtype", self.dtype),
            *("--host", self.host, "--port", str(self.port)),
            *("--tensor-parallel-size", str(self.tensor_parallel)),
            *(("--pipeline-parallel-size", str(self.pipeline_parallel)) if self.pipeline_parallel > 1 else ()),
            *(("--shutdown-timeout", str(self.drain_s)) if has_flag("--shutdown-timeout", self.version) else ()),
            *(("--enable-sleep-mode",) if self.can_sleep else ()),
            *("--disable-uvicorn-access-log", *quiet),
        )

    def _memory(self) -> tuple[str, ...]:
        blocks = None if self.kv_blocks is None else self.kv_blocks + 1
        return (
            *("--max-model-len", str(self.context_tokens), "--max-num-seqs", str(self.sequences)),
            *_given("--kv-cache-memory-bytes", self.kv_bytes),
            *_given("--num-gpu-blocks-override", blocks),
            *_given("--block-size", self.block_tokens),
            *_given("--max-num-batched-tokens", self.batch_tokens),
            *_given("--gpu-memory-utilization", self.memory_share),
            "--enable-prefix-caching" if self.prefix_caching else "--no-enable-prefix-caching",
        )

    def _admission(self) -> tuple[str, ...]:
        bound = None if self.default_max_tokens is None else json.dumps({"max_new_tokens": self.default_max_tokens})
        return (
            *("--scheduling-policy", "priority" if self.orders_by_priority else "fcfs"),
            *_given("--max-num-queued-reqs", self.queued_requests),
            *_given("--max-num-queued-tokens", self.queued_tokens),
            *_given("--override-generation-config", bound),
        )

    def _scheduler(self) -> tuple[str, ...]:
        if self.reservation is None or self.warning is not None:
            return ()
        chosen = "AsyncReservingScheduler" if self.is_asynchronous else "ReservingScheduler"
        settings = json.dumps({"tidegate": self.reservation.as_json()})
        return ("--scheduler-cls", f"{PLUGIN}.{chosen}", "--additional-config", settings)

    def _problem(self) -> str | None:
        if self.dtype not in DTYPES:
            return f"dtype must be one of {', '.join(DTYPES)}, and that of the checkpoint, not {self.dtype!r}"
        if (self.kv_bytes is None) == (self.kv_blocks is None):
            return "give the KV pool once, as kv_bytes or as kv_blocks"
        if self.kv_blocks is not None and self.block_tokens is not None and self._room() < self.context_tokens:
            return f"{self.kv_blocks} blocks hold {self._room()} tokens, less than one context of {self.context_tokens}"
        if not is_internal(self.host):
            return f"{self.host} is open to others; bind an engine to loopback or a private address (S3-32)"
        if self.reservation is not None and self.reservation.unknown_version == "refuse" and self.warning is not None:
            return self.warning
        asked = {"--kv-cache-memory-bytes": self.kv_bytes, "--max-num-queued-reqs": self.queued_requests}
        asked["--max-num-queued-tokens"] = self.queued_tokens
        unknown = [flag for flag, value in asked.items() if value is not None and not has_flag(flag, self.version)]
        return f"this version is not known to have {unknown[0]}" if unknown else None

    def _room(self) -> int:
        return (self.kv_blocks or 0) * (self.block_tokens or 0)


def _given(flag: str, value: float | str | None) -> tuple[str, ...]:
    return () if value is None else (flag, str(value))


def release(version: str) -> tuple[int, ...]:
    """``0.32.0+cpu`` -> (0, 32, 0); what is no number ends it."""
    numbers: list[int] = []
    for part in version.partition("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def has_flag(flag: str, version: str, since: Mapping[str, tuple[int, ...]] = FLAG_KNOWN_SINCE) -> bool:
    return release(version) >= since.get(flag, ())


def is_internal(host: str) -> bool:
    """Whether only this machine or a private network reaches it."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_private and not address.is_unspecified
