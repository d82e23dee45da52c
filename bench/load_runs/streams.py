"""What is sent in these measurements: the same short question, evenly spaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from tidegate.load.ask import Ask

QUESTION = (
    b',"messages":[{"role":"user","content":"Tell me a story about a lighthouse."}],'
    b'"max_tokens":16,"stream":true,"stream_options":{"include_usage":true}}'
)


@dataclass(frozen=True, slots=True)
class EvenStreams:
    """``rate`` a second."""

    rate: float
    title: str = "the same short question, as a stream"

    def asks(self, seed: int) -> Iterator[Ask]:
        del seed  # Nothing is drawn.
        for index in count():
            yield Ask(index=index, due_s=index / self.rate, label="stream", body=QUESTION, max_tokens=16)

    def salted(self, salt: str) -> EvenStreams:
        del salt  # The mock has no cache, and the question no nonce.
        return self
