"""Whether every message of a chat says who speaks: the OpenAI API requires it, and llama.cpp answers 500 without."""

from __future__ import annotations

import msgspec

MOST_DECODED_BYTES = 16 * 1024
"""Some 50 µs. Longer messages of several parts, images above all, are the engine's to judge."""


class Spoken(msgspec.Struct, gc=False):
    """What is looked at of a message."""

    role: str


_messages = msgspec.json.Decoder(list[Spoken])


def roles_problem(messages: bytes) -> str:
    """What is wrong with JSON of a chat's messages, in words; "" where each has a role.

    Plain messages are told by counting: a quote inside a text is escaped, so ``"role"`` is a key. Where there are as
    many of it as there are objects, nothing is decoded.
    """
    roles = messages.count(b'"role"')
    if (roles and roles >= messages.count(b"{")) or len(messages) > MOST_DECODED_BYTES:
        return ""
    try:
        _messages.decode(messages)
    except msgspec.ValidationError as error:
        return str(error).replace("$[", "messages[")
    except msgspec.DecodeError:
        return ""
    return ""
