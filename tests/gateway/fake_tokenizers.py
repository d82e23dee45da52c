"""Stands for the tokenizer processes: answers by a function, after a time, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidegate.gateway.tokenizer_process import Owner, Seat
from tidegate.gateway.tokenizing_messages import Count, Counted, Question, Tokenize, Tokenized, Told

Answer = Callable[[Question], Told | None]
"""None: it dies over the question."""


def one_a_byte(question: Question) -> Told:
    """Each byte of a body or a text is a token; ids are wanted as a list of ones."""
    if isinstance(question, Tokenize):
        return Tokenized(list(question.text.encode()))
    return Counted((len(question.body),), b"[1,1,1]" if question.wants_ids else None)


class FakeSeat:
    """One process that is none."""

    def __init__(self, owner: Owner, like: FakeSpawn) -> None:
        self._owner = owner
        self._like = like
        self._timer: asyncio.TimerHandle | None = None
        self.asked: list[Question] = []
        self.is_killed = False

    def ask(self, question: Question) -> bool:
        self.asked.append(question)
        self._timer = asyncio.get_running_loop().call_later(self._like.after_s, self._tell, question)
        return True

    def _tell(self, question: Question) -> None:
        told = self._like.answer(question)
        if told is None:
            self.kill()
        else:
            self._owner.on_told(self, told)

    def kill(self) -> None:
        self.is_killed = True
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().call_soon(self._owner.on_gone, self)


class FakeSpawn:
    """Makes seats, which answer with what ``answer`` says, ``after_s`` later."""

    def __init__(self, answer: Answer = one_a_byte, after_s: float = 0.0) -> None:
        self.answer = answer
        self.after_s = after_s
        self.starts_after_s = 0.0
        self.fails = False
        self.seats: list[FakeSeat] = []

    async def __call__(self, owner: Owner) -> Seat:
        await asyncio.sleep(self.starts_after_s)
        if self.fails:
            raise OSError("no more processes")
        seat = FakeSeat(owner, self)
        self.seats.append(seat)
        return seat

    @property
    def counted(self) -> list[Count]:
        return [question for seat in self.seats for question in seat.asked if isinstance(question, Count)]
