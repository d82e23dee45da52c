"""The contiguous baseline: what allocators before paging did, kept to show what paging ended.

A sequence gets one region for its prompt and its output bound, first fit, for as long as it lives.
Regions of many sizes leave holes between them, so a request can fail though more than enough memory
is free in sum (SPEC S0-20: 11 GB free, the largest hole 890 MB, 1.1 GB asked). Paged engines such as
vLLM do not work like this (C4): their blocks are equal, so any free block serves.
"""

from __future__ import annotations

from bisect import bisect_left


class ContiguousKv:
    """Regions by owner; sizes in tokens, or in any other unit that the caller keeps to."""

    def __init__(self, tokens: int) -> None:
        self.total_tokens = self.free_tokens = tokens
        self._holes = [(0, tokens)]
        """(start, length), in order of their place, never two side by side."""
        self._regions: dict[int, tuple[int, int]] = {}

    @property
    def used_tokens(self) -> int:
        return self.total_tokens - self.free_tokens

    @property
    def largest_free_tokens(self) -> int:
        return max((length for _, length in self._holes), default=0)

    def fits(self, tokens: int, _step: int) -> bool:
        return tokens <= self.largest_free_tokens

    def is_torn(self, tokens: int) -> bool:
        """Enough is free in sum, and no hole is large enough: where such an allocator runs out of memory."""
        return self.largest_free_tokens < tokens <= self.free_tokens

    def take(self, owner: int, tokens: int) -> None:
        """Raises MemoryError when no hole is large enough."""
        for index, (start, length) in enumerate(self._holes):
            if length >= tokens:
                rest = [(start + tokens, length - tokens)] if length > tokens else []
                self._holes[index : index + 1] = rest
                self._regions[owner] = (start, tokens)
                self.free_tokens -= tokens
                return
        raise MemoryError(
            f"{tokens} asked, {self.free_tokens} free, of which the largest block is {self.largest_free_tokens}"
        )

    def give_back(self, owner: int, _tokens: int) -> None:
        """The whole region becomes a hole, and one with the holes beside it."""
        start, length = self._regions.pop(owner)
        self.free_tokens += length
        index = bisect_left(self._holes, (start, length))
        if index < len(self._holes) and self._holes[index][0] == start + length:
            length += self._holes.pop(index)[1]
        if index and sum(self._holes[index - 1]) == start:
            index -= 1
            before, before_length = self._holes.pop(index)
            start, length = before, before_length + length
        self._holes.insert(index, (start, length))

    # A region is reserved whole, so growing in it takes nothing more.

    def start_growing(self, tokens: int, step: int) -> None: ...

    def stop_growing(self, tokens: int, step: int) -> None: ...

    def is_short(self, _step: int) -> bool:
        return False

    def grow(self, step: int, steps: int) -> None: ...

    def steps_until_short(self, _step: int, horizon: int) -> int:
        return horizon
