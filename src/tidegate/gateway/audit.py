"""Who changed what of a running service: one line each in the log, and the latest for ``GET /admin/audit``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KEPT = 500


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at_unix_s: float
    who: str
    """``admin API, 127.0.0.1, token 3f2a91c0`` (the digest's first half word), ``SIGHUP``, ``file``."""
    what: str
    """``config``, ``reload``, ``drain``, ``sleep``."""
    changes: tuple[str, ...]
    """One line per changed key, old -> new; of a refused change none."""
    problems: tuple[str, ...] = ()
    """Why it was refused; empty: it is in force."""

    def lines(self) -> list[str]:
        """For the log."""
        begin = f"audit: {self.who}: {self.what}"
        if self.problems:
            return [f"{begin} refused: {problem}" for problem in self.problems]
        return [f"{begin}: {change}" for change in self.changes]


class Audit:
    def __init__(self, say: Callable[[str, str], None], clock: Callable[[], float]) -> None:
        self._say = say
        self._clock = clock
        self._entries: deque[AuditEntry] = deque(maxlen=KEPT)

    def note(self, who: str, what: str, changes: list[str], problems: list[str] | None = None) -> None:
        entry = AuditEntry(self._clock(), who, what, tuple(changes), tuple(problems or ()))
        self._entries.append(entry)
        for line in entry.lines():
            self._say("warning" if entry.problems else "info", line)

    def latest(self) -> list[dict[str, Any]]:
        """The latest first."""
        return [
            {
                "at_unix_s": each.at_unix_s,
                "who": each.who,
                "what": each.what,
                "changes": list(each.changes),
                "problems": list(each.problems),
            }
            for each in reversed(self._entries)
        ]
