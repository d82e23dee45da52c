"""Asks for tests: few, short, and alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from tidegate.load.ask import Ask


def ask(index: int = 0, *, tokens: int = 4, stream: bool = True, **fields: Any) -> Ask:
    body = {"messages": [{"role": "user", "content": f"ask {index}"}], "max_tokens": tokens, "stream": stream}
    text = "," + json.dumps(body)[1:]
    return Ask(**{"index": index, "label": "chat", "body": text.encode(), "is_stream": stream, **fields})


@dataclass(frozen=True, slots=True)
class Even:
    """``rate`` a second, evenly; endless. Picklable, as a crew wants it."""

    rate: float
    tokens: int = 4

    @property
    def title(self) -> str:
        return "even asks of a test"

    def asks(self, seed: int) -> Iterator[Ask]:
        for index in count():
            yield ask(index, tokens=self.tokens, due_s=index / self.rate, tenant=f"seed-{seed}")

    def salted(self, salt: str) -> Even:
        return self


@dataclass(frozen=True, slots=True)
class Failing:
    """Its asks cannot be made."""

    title: str = "asks that fail"

    def asks(self, seed: int) -> Iterator[Ask]:
        yield ask(0)
        raise LookupError(f"no asks for the seed {seed}")

    def salted(self, salt: str) -> Failing:
        return self
