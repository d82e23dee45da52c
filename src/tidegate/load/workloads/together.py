"""Several sources in one phase, each with a rhythm of its own."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.load.ask import Ask
from tidegate.load.workloads.blend import Blend


@dataclass(frozen=True, slots=True)
class Together:
    """Open loops only, with names of their own: two of one name would say the same."""

    parts: tuple[Blend, ...]

    @property
    def title(self) -> str:
        titles = list(dict.fromkeys(part.title for part in self.parts))
        return f"{len(self.parts)} x ({titles[0]})" if len(titles) == 1 else " + ".join(titles)

    def salted(self, salt: str) -> Together:
        return Together(tuple(part.salted(salt) for part in self.parts))

    def asks(self, seed: int) -> Iterator[Ask]:
        merged = heapq.merge(*(part.asks(seed) for part in self.parts), key=lambda ask: ask.due_s)
        return (replace(ask, index=index) for index, ask in enumerate(merged))
