"""Negative notes on a session, user, source or model: who, why, on what evidence, until when.

Every mark expires (R5). A key that times out ``trigger_count`` times within ``window_s`` is marked
high-risk by itself (SPEC S0-41, S0-46, S0-47: 5 in 60 s, windowed by C5), a timeout being what the
outcome table says counts against the client.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from enum import StrEnum

MOST_KEYS = 10_000


class MarkKind(StrEnum):
    SESSION = "session"
    TENANT = "tenant"
    SOURCE = "source"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarksConfig:
    enabled: bool = True
    trigger_count: int = 5
    window_s: float = 60.0
    high_risk_s: float = 30.0
    """How long an automatic mark lasts: S0-54 asks for an end and names none."""

    def __post_init__(self) -> None:
        if self.trigger_count < 1 or self.window_s <= 0 or self.high_risk_s <= 0:
            raise ValueError(f"marks need trigger_count >= 1 and positive times: {self}")


@dataclass(frozen=True, slots=True)
class Mark:
    kind: MarkKind
    key: str
    reason: str
    until: float
    evidence: str


Key = tuple[MarkKind, str]


class Marks:
    """The table. Bounded: the oldest key goes when it is full."""

    __slots__ = ("_marks", "_strikes", "config")

    def __init__(self, config: MarksConfig) -> None:
        self.config = config
        self._marks: OrderedDict[Key, Mark] = OrderedDict()
        self._strikes: OrderedDict[Key, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, mark: Mark) -> None:
        key = (mark.kind, mark.key)
        self._marks.pop(key, None)
        if len(self._marks) >= MOST_KEYS:
            self._marks.popitem(last=False)
        self._marks[key] = mark

    def remove(self, kind: MarkKind, key: str) -> None:
        self._marks.pop((kind, key), None)

    def find(self, kind: MarkKind, key: str | None, now: float) -> Mark | None:
        """The mark on this key if it still holds."""
        if key is None:
            return None
        mark = self._marks.get((kind, key))
        if mark is not None and mark.until <= now:
            del self._marks[kind, key]
            return None
        return mark

    def strike(self, kind: MarkKind, key: str, now: float) -> Mark | None:
        """Count one timeout against a key; the mark, if this was one too many."""
        if not self.config.enabled:
            return None
        strikes = self._strikes.pop((kind, key), None) or deque()
        strikes.append(now)
        while strikes[0] <= now - self.config.window_s:
            strikes.popleft()
        if len(strikes) >= self.config.trigger_count:
            evidence = f"{len(strikes)} timeouts within {self.config.window_s:g} s"
            mark = Mark(kind, key, "high_risk", now + self.config.high_risk_s, evidence)
            self.add(mark)
            return mark
        if len(self._strikes) >= MOST_KEYS:
            self._strikes.popitem(last=False)
        self._strikes[kind, key] = strikes
        return None

    def expire(self, now: float) -> None:
        for key in [key for key, mark in self._marks.items() if mark.until <= now]:
            del self._marks[key]

    def live(self, now: float) -> list[Mark]:
        self.expire(now)
        return [*self._marks.values()]

    def dump(self, now: float) -> list[dict[str, object]]:
        """Remaining times instead of ends, so that another clock can restore them."""
        return [
            {
                "kind": m.kind.value,
                "key": m.key,
                "reason": m.reason,
                "remaining_s": m.until - now,
                "evidence": m.evidence,
            }
            for m in self.live(now)
        ]

    def restore(self, state: list[dict[str, object]], now: float) -> None:
        for row in state:
            remaining_s = row["remaining_s"]
            if isinstance(remaining_s, int | float) and remaining_s > 0:
                kind = MarkKind(str(row["kind"]))
                self.add(Mark(kind, str(row["key"]), str(row["reason"]), now + remaining_s, str(row["evidence"])))
