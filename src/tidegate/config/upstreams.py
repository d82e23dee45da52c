"""Section ``upstreams``: public model names and the engines behind each (SPEC S3-16)."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from tidegate.config.ladder import OwnLadder
from tidegate.config.output import ModelOutput
from tidegate.config.quantity import Size
from tidegate.config.quotas import ModelLimits
from tidegate.config.section import Section
from tidegate.config.started_engines import Engine
from tidegate.policy.abnormal import OnOverlength
from tidegate.policy.limits.per_model import ModelConfig
from tidegate.policy.output.output_config import OutputOverride


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"must be a URL such as http://127.0.0.1:8000: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise ValueError(f"must be a URL such as http://127.0.0.1:8000 or https://host/base, got {url!r}")
    if parts.query or parts.fragment:
        raise ValueError("must not hold a query or a fragment; only scheme, host, port and base path")
    if parts.username or parts.password:
        raise ValueError("must not hold a user or password; use api_key_env or api_key_file")
    return url.rstrip("/")


Positive = Annotated[int, Field(ge=1)]


class Replica(Section):
    """One engine server. A bare URL stands for ``{url: URL}``.

    Capacity that is not given is read from the engine where it tells, else unknown: that gate
    stays open and the adaptive limit protects the replica.
    """

    url: Annotated[str, AfterValidator(_http_url)]
    """Scheme, host, port and base path; ``/v1/…`` is added to it (``/v1`` may stand at its end already)."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """In metrics, records and headers. Default: the alias and a number, such as ``chat-0``."""
    model: str | None = None
    """The engine's own name of the model. Default: the alias."""
    api_key_env: str | None = None
    """Environment variable that holds the engine's API key."""
    api_key_file: str | None = None
    """File that holds the engine's API key."""
    ca_file: str | None = None
    """PEM file of the authorities that may sign the engine's certificate. Default: the system's."""
    sni: str | None = None
    """Server name asked for and checked in TLS. Default: the URL's host."""
    passthrough: bool = False
    """Forward the client's own Authorization header. Off, because it would hand our clients' keys to the engine."""
    kv_tokens: Positive | None = None
    """KV pool in tokens."""
    kv_pool_bytes: Size | None = None
    """KV pool in bytes, where ``kv_tokens`` is not known; needs ``bytes_per_token``."""
    bytes_per_token: Positive | None = None
    """KV bytes per token: 2 × layers × KV heads × head size × bytes per number ÷ tensor parallel (SPEC C3)."""
    slot_tokens: Positive | None = None
    """Size of one slot in tokens. Default: from ``slots.slot_size_mib`` and ``bytes_per_token``, else 256."""
    slot_size_mib: Positive | None = None
    """Size of one slot in MiB; needs ``bytes_per_token``."""
    sequences: Positive | None = None
    """Most sequences beside each other (vLLM: --max-num-seqs). More than there are slots: see ``slots.overcommit``."""
    context_tokens: Positive | None = None
    """Longest prompt and output of one sequence (vLLM: --max-model-len)."""
    priority: bool = False
    """Send the service class as vLLM's ``priority`` (SPEC S3-04). Only for a vLLM started with ``--scheduling-policy
    priority``: another refuses such requests."""
    domain: Annotated[str, Field(min_length=1)] | None = None
    """What it shares with others that can fail at once, such as ``zone-a``: a retry prefers another one, and of more
    than 16 replicas two of different domains are compared."""
    abort_grace_s: Annotated[float, Field(ge=0)] | None = None
    """How long an aborted attempt keeps its slots when the engine never confirms. Default: by engine."""


class Upstream(Section):
    """Interchangeable replicas behind one public model name."""

    replicas: tuple[Replica, ...] = ()
    """Engines that run already."""
    engine: Engine | None = None
    """An engine to start beside them."""
    limits: ModelLimits = ModelConfig()
    """What all its replicas together may get, and how long requests wait for it (SPEC S3-09)."""
    tokenizer: Annotated[str, Field(min_length=1)] | None = None
    """The model's ``tokenizer.json``, or the folder that holds it and the chat template. Prompts are then counted
    here, off the request path, and no engine is asked (SPEC S3-14). Needs ``tidegate[tokenizers]``."""
    forward_token_ids: bool = False
    """Send token ids in the place of the text of long completion prompts, to replicas whose own tokenizer was found
    to make the same. Needs ``tokenizer``."""
    on_overlength: OnOverlength = OnOverlength.REJECT
    """About prompts longer than its context: `reject`; `truncate` drops the oldest messages but the system's, or the
    middle of the prompt; `route_long` sends them to `long_to`. The last two are labelled (SPEC S2-41)."""
    long_to: Annotated[str, Field(min_length=1)] | None = None
    """The upstream with a longer context that `on_overlength: route_long` sends to."""
    output: ModelOutput = OutputOverride()
    """Where its answers are looked into otherwise than the section ``output`` says."""
    ladder: OwnLadder = OwnLadder()
    """What a client of this model gets in the place of a refusal, where that differs from ``ladder``."""
    images_to: Annotated[str, Field(min_length=1)] | None = None
    """Requests with images go to this upstream instead: one name for clients, and the content decides (SPEC S0-70)."""
    continuation: Literal["off", "text", "exact"] = "off"
    """When a replica dies in the middle of a stream, another goes on with it, so that the client has one answer
    (docs/policies/continuation.md). ``text``: llama.cpp, and completions of vLLM. ``exact``: vLLM, by token ids. Off,
    because such an answer is of two replicas, and what is sent has to be kept until it is complete."""
