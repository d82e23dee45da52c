"""Who waits a step when the pool cannot give every running sequence its next block.

A sequence that is not scheduled keeps its KV and goes on later with the same tokens. A pause of a few steps is
shorter than any preemption, which computes the whole sequence anew; a long one holds memory that nobody uses, and was
measured to be worse than preempting. So pauses are short, and after them the engine preempts as it always did.
"""

from __future__ import annotations

from collections.abc import Iterable


class Pauses:
    """Consecutive steps that each sequence has been paused."""

    __slots__ = ("_steps", "most_steps", "paused_steps", "sequences")

    def __init__(self, most_steps: int | None) -> None:
        self.most_steps = most_steps
        """None: no end, for where it is proven that the wait ends."""
        self.paused_steps = 0
        """Sum over all sequences, in all."""
        self.sequences = 0
        """Times that a pause began."""
        self._steps: dict[str, int] = {}

    def may_pause(self, request_id: str) -> bool:
        return self.most_steps is None or self._steps.get(request_id, 0) < self.most_steps

    def commit(self, paused: Iterable[str]) -> None:
        """These are paused in the step that begins, nobody else is."""
        steps = {each: self._steps.get(each, 0) + 1 for each in paused}
        self.paused_steps += len(steps)
        self.sequences += len(steps.keys() - self._steps.keys())
        self._steps = steps
