"""Which request a call under an Idempotency-Key is: a new one, one that runs, or one that is over.

    same tenant, same key, same digest, running    → join it
    same tenant, same key, same digest, kept       → replay what it got
    same tenant, same key, another digest          → refuse: the key is taken
    anything else                                  → a new request

The digest is of method, path and body (draft-ietf-httpapi-idempotency-key-header-07, section 2.4 leaves
it to the server). Kept is what a repeat would get again: a complete 2xx, and the 4xx that say that the
request itself is wrong. A refusal or failure that time may mend is forgotten at once, so that a retry
under the same key can succeed; so is an answer that is too long (SPEC S1-12).

Bounded in age, in number and in bytes. When a bound is reached, the tenant that holds the most bytes
loses its oldest answer: nobody can push out what is another's by flooding the store.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

LONGEST_KEY = 255
"""Bytes; a UUID has 36, and Stripe's API, which made the header known, allows as many."""

LASTING_STATUSES = frozenset({400, 413, 422})
"""Statuses of errors that the same request would get again."""

Answer = TypeVar("Answer")
Name = tuple[str, bytes]
"""Tenant and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyConfig:
    """A repeat under the same ``Idempotency-Key`` joins the first call or gets its answer."""

    enabled: bool = True
    max_age_s: float = 600.0
    """How long an answer can be had again. The stock OpenAI clients give up after 10 minutes."""
    max_bytes: int = 64 * 1024 * 1024
    max_answer_bytes: int = 1024 * 1024
    """A longer answer is neither kept nor joined in its middle."""
    max_answers: int = 10_000
    orphan_s: float = 2.0
    """How long a request whose last client has left runs on, so that a client that lost its connection finds it.
    The stock OpenAI clients come back after 0.4 s to 0.5 s. 0: the engine is told at once."""

    def __post_init__(self) -> None:
        if not 0 < self.max_answer_bytes <= self.max_bytes or self.max_answers < 1:
            raise ValueError(f"idempotency needs 0 < max_answer_bytes <= max_bytes and max_answers >= 1: {self}")
        if self.max_age_s <= 0 or self.orphan_s < 0:
            raise ValueError(f"idempotency needs max_age_s > 0 and orphan_s >= 0: {self}")


class TakenError(ValueError):
    """The key belongs to a request with another method, path or body."""


class Entry(Generic[Answer]):
    """One request under a key. ``size_bytes`` and ``until`` count once it is over."""

    __slots__ = ("answer", "digest", "is_over", "size_bytes", "until")

    def __init__(self, digest: bytes, answer: Answer) -> None:
        self.digest = digest
        self.answer = answer
        self.is_over = False
        self.size_bytes = 0
        self.until = 0.0


class KeyedAnswers(Generic[Answer]):
    """Knows every request that has a key, by tenant and key; what an ``Answer`` is, only the driver knows."""

    __slots__ = ("_held_bytes", "_kept", "_running", "config", "kept", "kept_bytes")

    def __init__(self, config: IdempotencyConfig) -> None:
        self.config = config
        self._running: dict[Name, Entry[Answer]] = {}
        self._kept: dict[str, OrderedDict[bytes, Entry[Answer]]] = {}
        """By tenant, the oldest first; no tenant without an answer."""
        self._held_bytes: dict[str, int] = {}
        """By tenant, of what is kept."""
        self.kept = 0
        """Answers that can be had again."""
        self.kept_bytes = 0

    def find(self, name: Name, digest: bytes, now: float) -> Entry[Answer] | None:
        """The request that this call repeats, if there is one. Raises ``TakenError``."""
        entry = self._running.get(name)
        if entry is None:
            answers = self._kept.get(name[0])
            entry = None if answers is None else answers.get(name[1])
            if entry is not None and entry.until <= now:
                self._drop(name)
                entry = None
        if entry is not None and entry.digest != digest:
            raise TakenError
        return entry

    def begin(self, name: Name, digest: bytes, answer: Answer) -> None:
        """A new request; ``find`` has said that there is none."""
        if name in self._running:
            raise ValueError(f"a request of tenant {name[0]} already runs under this key")
        self._running[name] = Entry(digest, answer)

    def end(self, name: Name, status: int, size_bytes: int, now: float, *, is_complete: bool) -> bool:
        """The request is over. True: its answer is kept, and every repeat gets it."""
        entry = self._running.pop(name)
        config = self.config
        is_lasting = is_complete and (200 <= status < 300 or status in LASTING_STATUSES)
        if not is_lasting or size_bytes > config.max_answer_bytes:
            return False
        entry.is_over, entry.size_bytes, entry.until = True, size_bytes, now + config.max_age_s
        self._kept.setdefault(name[0], OrderedDict())[name[1]] = entry
        self._count(name[0], 1, size_bytes)
        self._keep_to_bounds()
        return True

    def forget(self, name: Name) -> None:
        """The request was given up before it was over."""
        del self._running[name]

    def expire(self, now: float) -> None:
        """Drop what is too old."""
        for tenant in list(self._kept):
            answers = self._kept[tenant]
            while answers:
                key, entry = next(iter(answers.items()))
                if entry.until > now:
                    break
                self._drop((tenant, key))

    def reconfigure(self, config: IdempotencyConfig) -> None:
        """New bounds; what is kept keeps its age."""
        self.config = config
        self._keep_to_bounds()

    def view(self) -> dict[str, int]:
        """Figures for gauges and tests."""
        return {"running": len(self._running), "kept": self.kept, "kept_bytes": self.kept_bytes}

    def _keep_to_bounds(self) -> None:
        config = self.config
        while self._kept and (self.kept_bytes > config.max_bytes or self.kept > config.max_answers):
            tenant = max(self._held_bytes, key=self._held_bytes.__getitem__)
            self._drop((tenant, next(iter(self._kept[tenant]))))

    def _drop(self, name: Name) -> None:
        tenant, key = name
        answers = self._kept[tenant]
        self._count(tenant, -1, -answers.pop(key).size_bytes)
        if not answers:
            del self._kept[tenant], self._held_bytes[tenant]

    def _count(self, tenant: str, answers: int, size_bytes: int) -> None:
        self.kept += answers
        self.kept_bytes += size_bytes
        self._held_bytes[tenant] = self._held_bytes.get(tenant, 0) + size_bytes
