"""Everything the data process needs to know, as plain data: it travels in ``Start`` and ``Apply``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.engines.address import Address
from tidegate.policy.abnormal import InputConfig, Overlength
from tidegate.policy.idempotency import IdempotencyConfig
from tidegate.policy.job_accounts import JobsConfig
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.path_config import PathConfig
from tidegate.wire.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where and how one replica is reached. ``name`` is the replica's name in ``PathConfig``."""

    name: str
    host: str
    port: int
    kind: str = "openai"
    """Which adapter fits the engine (``engines.recognition.KINDS``)."""
    base_path: str = ""
    """Prepended to the client's path (which begins with ``/v1``); no slash at its end."""
    model: str | None = None
    """Model name the engine knows; None: the public name is sent as it came."""
    api_key: str | None = None
    """Sent as ``Authorization: Bearer``; in the clear here, so settings are never logged."""
    is_passthrough: bool = False
    """Forward the client's own ``Authorization`` instead."""
    is_tls: bool = False
    ca_file: str | None = None
    server_name: str | None = None
    """SNI and certificate name when they differ from ``host``."""
    proxy: str | None = None
    """``http://host:port`` of a proxy between us and the engine; None: a direct connection."""
    tokenizer: str | None = None
    """Path of the model's tokenizer.json, or of its folder; None: only the engine counts."""
    takes_token_ids: bool = False
    """Send ids in the place of a completion's text, once they were found to be the engine's own."""
    priorities: tuple[tuple[str, int], ...] = ()
    """Service classes and vLLM's ``priority`` of each, 0 the most urgent; empty: it is not told (SPEC S3-04)."""

    def address(self) -> Address:
        """Where an adapter asks this engine what is no client's request. Raises ConfigError for a ``ca_file``
        that cannot be read."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return Address(
            url=f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.base_path}",
            api_key=self.api_key,
            tls=Tls(self.ca_file, self.server_name) if self.is_tls else None,
            proxy=self.proxy,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A client's key, stored as its SHA-256 in hexadecimal."""

    sha256: str
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what a client may send."""

    head_bytes: int = 64 * 1024
    """Request line and headers. nginx 32 KiB, uvicorn 64 KiB."""
    body_bytes: int = 32 * 1024 * 1024
    """Room for a dozen images as data URIs."""
    pipelined_requests: int = 16
    """Parsed requests that wait behind the running one on a connection before reading stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """Seconds that belong to connections; those of an attempt come with its ``Permit``."""

    idle_s: float = 75.0
    """A client connection between requests; above the 60 s of common load balancers, so that they close first."""
    head_s: float = 30.0
    """From the first byte of a request to its last, while nothing more arrives (slow-loris bound)."""
    connect_s: float = 5.0
    """TCP and TLS to an engine. The OpenAI client allows itself the same."""
    reuse_s: float = 4.0
    """Idle engine connections are dropped after this: uvicorn closes after 5 s, and a request must not meet that."""
    heartbeat_s: float = 15.0
    """Between SSE comments while a stream waits for its first token; 0 turns them off."""
    drain_s: float = 30.0
    """For running requests after SIGTERM."""
    linger_s: float = 2.0
    """How long bytes of a refused upload are read and dropped, so that the answer is not lost in a reset."""
    tick_s: float = 0.1
    """Resolution of every timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How prompt tokens are estimated from bytes before any usage is known."""

    bytes_per_token: float = 4.0
    """English text under the common tokenizers; learned from usage per upstream afterwards."""
    image_tokens: int = 1024
    """Fixed cost of one image part: about a 1024 × 1024 image in Qwen2-VL (28 × 28 pixels a token)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Where it may be told that a job has ended."""

    origins: tuple[str, ...] = ()
    """Scheme, host and port, as in ``https://hooks.example.com``; none: no callbacks."""
    secret: str | None = None
    """Signs them; in the clear here, so settings are never logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The data process's whole configuration."""

    path: PathConfig
    endpoints: tuple[Endpoint, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    limits: Limits = field(default_factory=Limits)
    timers: Timers = field(default_factory=Timers)
    counting: Counting = field(default_factory=Counting)
    api_keys: tuple[ApiKey, ...] = ()
    """None configured: open, which ``is_open_by_mistake`` allows on loopback only."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks whose X-Forwarded-For and PROXY v2 headers are believed."""
    are_paths_strict: bool = False
    """Refuse every /v1 path we don't know, instead of passing it on as class ``other``."""
    are_requests_logged: bool = False
    """One log line per request, written by the parent."""
    are_rows_sent: bool = True
    """Tell the parent of each finished request; without, it has the counters only."""
    is_cache_enabled: bool = False
    """Compute cache keys and hand finished answers to the ladder."""
    normalises_answers: bool = False
    """Stored answers serve questions that say the same in other bytes."""
    images_to: dict[str, str] = field(default_factory=dict)
    """By upstream: where its requests with images go instead."""
    continuation: dict[str, str] = field(default_factory=dict)
    """By upstream: ``text`` or ``exact``, how its streams go on elsewhere when their replica dies."""
    idempotency: IdempotencyConfig = field(default=IdempotencyConfig())
    input: InputConfig = field(default=InputConfig())
    """What is looked for in requests."""
    overlength: dict[str, Overlength] = field(default_factory=dict)
    """By upstream, where prompts that are too long are not refused."""
    output: OutputConfig = field(default=OutputConfig())
    """How answers are looked into."""
    outputs: dict[str, OutputConfig] = field(default_factory=dict)
    """By upstream, where that is different."""
    jobs: JobsConfig = field(default=JobsConfig())
    callbacks: Callbacks = field(default=Callbacks())
    asks_usage: bool = False
    """Write ``stream_options.include_usage`` into streaming requests: exact token counts, at the price
    of one more event that the client did not ask for."""


def to_plain(settings: Settings) -> dict[str, Any]:
    """The form that travels."""
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    return plain


def from_plain(plain: dict[str, Any]) -> Settings:
    """Raises ``msgspec.ValidationError`` naming the field that is wrong."""
    return msgspec.convert(plain, Settings)
