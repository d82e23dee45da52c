"""Finished answers kept for reuse: bounded in bytes and in age, the one unused for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersConfig:
    max_bytes: int = 16 * 1024 * 1024
    max_answer_bytes: int = 64 * 1024
    max_age_s: float = 300.0
    """An older answer is not served, however urgent the need (S0-49: max staleness)."""
    serve_first: bool = False
    """Serve a stored answer before any engine is asked, not only in the place of a refusal (SPEC S2-11). Off: equal
    questions with a temperature above 0 would get equal answers."""
    normalise: bool = False
    """Two questions are equal if they differ only in the order of fields, in spaces at the ends of texts, and in
    fields that decide nothing about the answer (``user``, ``metadata``). Off: byte by byte, which is cheaper."""

    def __post_init__(self) -> None:
        if not 0 < self.max_answer_bytes <= self.max_bytes or self.max_age_s <= 0:
            raise ValueError(f"the cache needs 0 < max_answer_bytes <= max_bytes and max_age_s > 0: {self}")


class Answers:
    """Keys are digests that the driver makes of tenant, route and canonical body, so no tenant can
    read another's answer."""

    __slots__ = ("_answers", "_bytes", "config")

    def __init__(self, config: AnswersConfig) -> None:
        self.config = config
        self._answers: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    def remember(self, key: bytes, body: bytes, now: float) -> None:
        if len(body) > self.config.max_answer_bytes:
            return
        self._forget(key)
        self._answers[key] = (now, body)
        self._bytes += len(body)
        while self._bytes > self.config.max_bytes:
            self._forget(next(iter(self._answers)))

    def find(self, key: bytes, now: float, max_age_s: float) -> tuple[bytes, float] | None:
        """(body, age_s), or None."""
        known = self._answers.get(key)
        if known is None:
            return None
        stored_at, body = known
        if now - stored_at > self.config.max_age_s:
            self._forget(key)
            return None
        if now - stored_at > max_age_s:
            return None
        self._answers.move_to_end(key)
        return body, now - stored_at

    def reconfigure(self, config: AnswersConfig) -> None:
        self.config = config
        while self._bytes > config.max_bytes:
            self._forget(next(iter(self._answers)))

    def view(self) -> dict[str, int]:
        return {"answers": len(self._answers), "bytes": self._bytes}

    def _forget(self, key: bytes) -> None:
        known = self._answers.pop(key, None)
        if known is not None:
            self._bytes -= len(known[1])
