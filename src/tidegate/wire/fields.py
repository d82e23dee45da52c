"""The few fields of a JSON body that decide something. Apart from ``Body``, which is compiled."""

from __future__ import annotations

from typing import Any

import msgspec


class Fields(msgspec.Struct):
    """What is read of a chat, completion or embedding request. Absent and null are the same."""

    model: str | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    """The name in the Responses API, which passes as class ``other``."""
    n: int | None = None
    best_of: int | None = None
    messages: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    service_tier: str | None = None
    user: str | None = None
    priority: msgspec.Raw = msgspec.Raw()
    """vLLM's; whoever may set it decides who is served first."""
    temperature: msgspec.Raw = msgspec.Raw()
    top_p: msgspec.Raw = msgspec.Raw()
    stop: msgspec.Raw = msgspec.Raw()
    """Where the answer is to end. It may be at once, so that nothing is the right answer."""
    suffix: msgspec.Raw = msgspec.Raw()
    """What the answer stands before; that may be nothing."""
    response_format: msgspec.Raw = msgspec.Raw()
    guided_json: msgspec.Raw = msgspec.Raw()
    """vLLM's older name of a JSON Schema that the answer must fit."""
    structured_outputs: msgspec.Raw = msgspec.Raw()
    """vLLM's newer one, among others."""
