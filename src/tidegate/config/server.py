"""Section ``server``: the ports, who may use them, and what one connection may cost."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.config.quantity import Size
from tidegate.config.section import Section

Port = Annotated[int, Field(ge=0, le=65535)]


def _network(text: str) -> str:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"must be an address or a network such as 10.0.0.0/8, got {text!r}") from None
    return text


Digest = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$"), AfterValidator(str.lower)]


class ApiKey(Section):
    """A client's key, as its SHA-256 only: the file may be read by more people than may call."""

    name: Annotated[str, Field(min_length=1)]
    """Shown in records and logs."""
    sha256: Digest
    """SHA-256 of the key in hex: ``printf %s "$KEY" | sha256sum``."""
    tenant: Annotated[str, Field(min_length=1)] = "default"
    """Whose quota and fair share the key's requests use."""


class Server(Section):
    """The data port (OpenAI API) and the admin port (metrics, admin API, lens)."""

    host: str = "127.0.0.1"
    """Address of the data port. Any but a loopback address needs ``api_keys``."""
    port: Port = 8000
    """Data port; 0 takes any free one (SPEC S0-81)."""
    admin_host: str = "127.0.0.1"
    """Address of the admin port. Any but a loopback address needs ``admin_tokens``."""
    admin_port: Port = 8001
    """Admin port; 0 takes any free one."""
    max_body_bytes: Size = 32 * 2**20
    """Longest request body; a longer one is answered 413."""
    max_head_bytes: Size = 64 * 2**10
    """Longest request line and headers together; longer ones are answered 431."""
    keep_alive_s: Annotated[float, Field(gt=0)] = 75.0
    """How long an idle client connection stays open. Above 60 s: a load balancer's own limit should end it first."""
    heartbeat_s: Annotated[float, Field(ge=0)] = 15.0
    """Between SSE comments while a stream waits in the queue or for its first token; 0: none."""
    drain_s: Annotated[float, Field(ge=0)] = 30.0
    """How long running requests may finish after SIGTERM (SPEC S2-13)."""
    head_s: Annotated[float, Field(gt=0)] = 30.0
    """How long a client may send nothing in the middle of a request."""
    connect_s: Annotated[float, Field(gt=0)] = 5.0
    """For TCP and TLS to an engine."""
    reuse_s: Annotated[float, Field(ge=0)] = 4.0
    """Idle engine connections are dropped after it: uvicorn closes after 5 s, and a request must not meet that."""
    strict_paths: bool = False
    """Refuse /v1/* paths that Tidegate does not know, instead of passing them on as class ``other``."""
    log_requests: bool = False
    """One log line per request."""
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    """Networks whose X-Forwarded-For or PROXY header names the client."""
    api_keys: tuple[ApiKey, ...] = ()
    """Who may call. None: anyone who reaches the loopback address."""
    admin_tokens: tuple[Digest, ...] = ()
    """SHA-256 in hex of every token that opens the admin API. None: anyone who reaches the loopback address."""
