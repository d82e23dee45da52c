"""What one hostile connection sends, how it is cut into writes, and how it ends."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

Dice = random.Random
CHAT = b"/v1/chat/completions"
PATHS = (CHAT, b"/v1/completions", b"/v1/embeddings")
MOST_PIECES = 12


@dataclass(frozen=True, slots=True)
class Attack:
    """``ending``: ``wait`` for an answer, ``half`` (close after sending), ``close`` in the middle, or ``reset``."""

    name: str
    pieces: list[bytes]
    ending: str = "wait"
    is_due: bool = False
    """An answer must come: the request is complete and its framing is right."""
    is_head: bool = False

    @property
    def sent(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def may_be_cut(self) -> bool:
        """It sends more behind a request: past ``connection: close``, or what is no request. That ends the connection,
        and TCP takes an answer along that is not read yet."""
        return self.sent.count(b" HTTP/1.") > 1 or "pipelined" in self.name


def cut(dice: Dice, data: bytes) -> list[bytes]:
    """Into writes: mostly one, sometimes a few anywhere, now and then one byte each at the beginning."""
    way = dice.random()
    if way < 0.6 or len(data) < 2:
        return [data]
    if way < 0.95:
        places = sorted({dice.randrange(1, len(data)) for _ in range(dice.randint(1, MOST_PIECES))})
        return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
    size = min(40, len(data))
    return [*(data[at : at + 1] for at in range(size)), data[size:]]


def right(body: bytes, path: bytes = CHAT, lines: bytes = b"", method: bytes = b"POST") -> bytes:
    """A request whose framing is right."""
    head = b"%b %b HTTP/1.1\r\nhost: gate\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n"
    return head % (method, path, lines, len(body)) + body


def fields(model: str, **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, **more}


def said(model: str, **more: object) -> bytes:
    return json.dumps(fields(model, **more)).encode()


def mutated(dice: Dice, data: bytes) -> bytes:
    """A few bytes changed, added or taken."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(found) + 1)
        way = dice.random()
        if way < 0.4 and at < len(found):
            found[at] = dice.randrange(256)
        elif way < 0.7:
            found[at:at] = dice.choice([b"\r\n", b"\x00", b" ", b"\n", b":", b"\xff", b"\r", dice.randbytes(3)])
        else:
            del found[at : at + dice.randint(1, 8)]
    return bytes(found)
