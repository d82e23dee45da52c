"""Which adapter fits a running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tidegate.engines.address import Address
from tidegate.engines.engine import Engine
from tidegate.engines.llamacpp import server as llamacpp
from tidegate.engines.openai import OpenaiServer
from tidegate.engines.vllm import readings as vllm
from tidegate.errors import EngineError
from tidegate.wire.fetch import Reply

KEY_REFUSED = (401, 403)

KINDS: dict[str, Callable[[Address], Engine]] = {
    each.kind: each for each in (OpenaiServer, vllm.VllmServer, llamacpp.LlamaServer)
}


def engine_of(kind: str, address: Address) -> Engine:
    """The adapter of a kind that is known already, such as one that another process has recognised."""
    return KINDS[kind](address)


async def recognise(address: Address) -> Engine:
    """Ask the server at ``address`` what it is: vLLM and llama.cpp by their metrics (llama.cpp also by
    /props), anything else by a list of models.

    Raises:
        OSError: it cannot be reached (TimeoutError: it is silent).
        EngineError: it refuses our key, or nothing there looks like an OpenAI-compatible engine.
    """
    listed = await address.ask("/v1/models")
    page = await address.ask("/metrics")
    if page.status == 200 and vllm.MARK in page.body:
        kind = vllm.VllmServer.kind
    elif (page.status == 200 and llamacpp.MARK in page.body) or await _has_slots(address):
        kind = llamacpp.LlamaServer.kind
    else:
        kind = OpenaiServer.kind
    _check(address, listed)
    return engine_of(kind, address)


def _check(address: Address, listed: Reply) -> None:
    if listed.status in KEY_REFUSED:
        raise EngineError(f"{address.url}/v1/models answered {address.describe(listed)}")
    if listed.status == 429 or (listed.status == 200 and isinstance(_object(listed).get("data"), list)):
        return
    raise EngineError(
        f"{address.url} does not look like an OpenAI-compatible engine: /v1/models answered "
        f"{address.describe(listed)}. Give scheme, host, port and the part of the path before /v1"
    )


async def _has_slots(address: Address) -> bool:
    """What only llama.cpp's /props has."""
    reply = await address.ask("/props")
    return reply.status == 200 and "total_slots" in _object(reply)


def _object(reply: Reply) -> dict[str, Any]:
    try:
        return msgspec.json.decode(reply.body, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
