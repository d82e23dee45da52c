"""One abnormal request, and what it has to get."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.load.ask import CHAT, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class AbnormalCase:
    name: str
    group: str
    """Its label: figures are split by it."""
    body: bytes
    """What follows the model; not always JSON."""
    refusal: Refusal | None = None
    """None: it is unusual and right, and must be answered."""
    path: str = CHAT
    headers: tuple[tuple[str, str], ...] = ()
    is_stream: bool = True


def refused(*codes: str, status: int = 400) -> Refusal:
    return Refusal(frozenset({status}), frozenset(codes))


def either(*codes: str) -> Refusal:
    """Answered, or refused with a 4xx that says why: engines differ."""
    return Refusal(frozenset({400, 413, 415, 422}), frozenset(codes), may_answer=True)
