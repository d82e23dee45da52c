"""Where the asks of a phase come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tidegate.load.ask import Ask


class Source(Protocol):
    """Picklable: each process of the generator makes the same asks and sends its part of them."""

    @property
    def title(self) -> str:
        """For people: what is sent."""

    def asks(self, seed: int) -> Iterator[Ask]:
        """In the order of ``due_s``; equal seeds give equal asks. Endless where the phase is a closed loop."""

    def salted(self, salt: str) -> Source:
        """The same asks with other nonces: where two targets stand before one engine, its prefix cache must not
        answer the second for the first. Itself where its prompts have no nonce."""
