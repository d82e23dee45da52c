"""What a service says of itself before it is loaded: its model, how long a conversation may be, what it is."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidegate.engines.address import Address
from tidegate.engines.openai import OpenaiServer
from tidegate.engines.recognition import recognise
from tidegate.errors import ConfigError, TidegateError
from tidegate.load.target import Target
from tidegate.wire.fetch import Reply, fetch
from tidegate.wire.tls import Tls

ASK_WITHIN_S = 10.0


class _Entry(msgspec.Struct):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None


class _Listed(msgspec.Struct):
    data: list[_Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    model: str
    kind: str
    """``tidegate``, ``vllm``, ``llamacpp`` or ``openai`` (anything else)."""
    context_tokens: int | None
    """Longest prompt and answer; None: it does not say."""


async def facts_of(name: str, target: Target, model: str | None) -> TargetFacts:
    """Ask the target; ``model``: what the user named, ``name``: how messages speak of the target.

    Raises:
        ConfigError: nothing answers there, it refuses the key, it does not serve ``model``, or it serves several.
    """
    reply = await _asked(name, target)
    if reply.status in (401, 403):
        raise ConfigError([f"{name}: /models answered {reply.status}: give the key with --api-key-env VARIABLE"])
    listed = _entries(reply)
    if listed is None:
        if model is None:
            said = f"/models answered {reply.status} and no list"
            raise ConfigError([f"{name}: {said}; is the URL right, up to and with /v1? --model NAME does without it"])
        return TargetFacts(model=model, kind=OpenaiServer.kind, context_tokens=None)
    entry = _chosen(name, listed, model)
    if entry.owned_by == "tidegate":
        return TargetFacts(model=entry.id, kind="tidegate", context_tokens=entry.max_model_len)
    kind, context_tokens = await _engine(target)
    return TargetFacts(model=entry.id, kind=kind, context_tokens=context_tokens or entry.max_model_len)


async def _asked(name: str, target: Target) -> Reply:
    try:
        headers = dict(target.headers)
        return await fetch(f"{target.url}/models", headers=headers, timeout_s=ASK_WITHIN_S, tls=Tls(target.ca_file))
    except TimeoutError:
        raise ConfigError([f"{name}: no answer within {ASK_WITHIN_S:g} s; does the service run?"]) from None
    except (OSError, ValueError, TidegateError) as error:
        raise ConfigError([f"{name}: {error}; does the service run, and is the URL right, with /v1?"]) from None


def _entries(reply: Reply) -> list[_Entry] | None:
    if reply.status != 200:
        return None
    try:
        return msgspec.json.decode(reply.body, type=_Listed).data
    except msgspec.DecodeError:
        return None


def _chosen(name: str, listed: list[_Entry], model: str | None) -> _Entry:
    known = ", ".join(each.id for each in listed[:5]) or "none"
    if model is not None:
        found = next((each for each in listed if each.id == model), None)
        if found is None:
            raise ConfigError([f"{name}: no model {model!r} there; it lists {known}"])
        return found
    if len(listed) != 1:
        raise ConfigError([f"{name}: it lists {len(listed)} models ({known}); name one with --model"])
    return listed[0]


async def _engine(target: Target) -> tuple[str, int | None]:
    """Kind and context of an engine that is asked without a gateway before it."""
    bearer = next((value for key, value in target.headers if key.lower() == "authorization"), "")
    address = Address(
        url=target.url.removesuffix("/v1"), api_key=bearer.removeprefix("Bearer ") or None, timeout_s=ASK_WITHIN_S
    )
    try:
        engine = await recognise(address)
        return engine.kind, (await engine.capacity()).context_tokens
    except (OSError, TidegateError):
        return OpenaiServer.kind, None
