"""What the ladder leaves out of a request, written into its body."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from tidegate.policy.decisions import Alteration
from tidegate.wire.body import Body

TOOLS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")


class _Role(msgspec.Struct):
    role: str = ""


_messages = msgspec.json.Decoder(list[Raw])
_role = msgspec.json.Decoder(_Role)


def altered(body: Body, alteration: Alteration) -> dict[str, Any]:
    """Changes for ``Body.edited``."""
    changes: dict[str, Any] = {}
    if alteration.max_tokens is not None:
        changes["max_tokens"] = alteration.max_tokens
        if body.fields.max_completion_tokens is not None:
            changes["max_completion_tokens"] = alteration.max_tokens
    if alteration.drop_tools:
        changes.update(dict.fromkeys(TOOLS, UNSET))
    if alteration.keep_messages is not None and bytes(body.fields.messages):
        changes["messages"] = _latest(bytes(body.fields.messages), alteration.keep_messages)
    return changes


def _latest(messages: bytes, most: int) -> list[Raw]:
    """The instructions and the last ``most`` of the others. What a tool returned means nothing without its call."""
    parts = [(Raw(bytes(each)), _role.decode(each).role) for each in _messages.decode(messages)]
    spoken = [index for index, (_, role) in enumerate(parts) if role not in ("system", "developer")]
    kept = spoken[-most:]
    while kept and parts[kept[0]][1] in ("tool", "function"):
        del kept[0]
    return [raw for index, (raw, role) in enumerate(parts) if role in ("system", "developer") or index in kept]
