"""What policies have to tell people: policies cannot log, so they leave notices, and the driver collects them.

Rule: a notice is added where a rare state changes (a mark set or ended, the ladder switching), never per request
alone; the driver takes all of them about once a second and turns each into a log line. At most ``MOST_NOTICES`` wait;
above that the newest are dropped and counted, for the first ones of a storm say what began it.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_NOTICES = 1_000


@dataclass(frozen=True, slots=True)
class Notice:
    kind: str
    """What happened, such as ``mark_set``, ``mark_ended``, ``degraded``."""
    text: str
    """The whole line, keys already shown as configured."""
    level: str = "info"
    """``info``, ``warning`` or ``error``."""


class Notices:
    __slots__ = ("_waiting", "lost")

    def __init__(self) -> None:
        self._waiting: list[Notice] = []
        self.lost = 0
        """Dropped since the start because nobody took them in time."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, kind: str, text: str, level: str = "info") -> None:
        if len(self._waiting) >= MOST_NOTICES:
            self.lost += 1
            return
        self._waiting.append(Notice(kind, text, level))

    def take(self) -> list[Notice]:
        """Everything that waits, in order; it is forgotten here."""
        taken, self._waiting = self._waiting, []
        return taken
