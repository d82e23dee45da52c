"""What people are told about readings: an engine that is not ready any more, and one that tells no figures."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tidegate.policy.reading import Reading

TOLD_AFTER_S = 3.0
"""Figures that are missing for a shorter time were late: an engine that is busy answers no page."""

NOT_READY = "it is not ready"
GOES_ON = "it is used on by our own accounts, which see no load but ours"

Say = Callable[[str, str], None]
"""Level and line."""


class ReadingNews:
    """Each change is told once."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._was_ready: dict[str, bool] = {}
        self._figures_at: dict[str, float] = {}
        """When each replica last told how much it runs; those that never did are not in it."""
        self._silent: set[str] = set()

    def note(self, replica: str, reading: Reading) -> None:
        self._note_ready(replica, reading)
        if reading.ready:
            self._note_figures(replica, reading)

    def keep(self, replicas: Collection[str]) -> None:
        """Forget all others."""
        for replica in self._was_ready.keys() - replicas:
            del self._was_ready[replica]
            self._figures_at.pop(replica, None)
            self._silent.discard(replica)

    def _note_ready(self, replica: str, reading: Reading) -> None:
        was_ready = self._was_ready.get(replica)
        self._was_ready[replica] = reading.ready
        if was_ready and not reading.ready:
            self._say(
                "warning", f"{replica}: {reading.error or NOT_READY}; it gets no requests until it is ready again"
            )
        elif was_ready is False and reading.ready:
            self._say("info", f"{replica}: ready again")

    def _note_figures(self, replica: str, reading: Reading) -> None:
        if reading.running is not None:
            self._figures_at[replica] = reading.at
            if replica in self._silent:
                self._silent.discard(replica)
                self._say("info", f"{replica}: its engine tells its figures again")
        elif replica in self._figures_at and replica not in self._silent:
            missing_s = reading.at - self._figures_at[replica]
            if missing_s >= TOLD_AFTER_S:
                self._silent.add(replica)
                self._say("warning", f"{replica}: its engine tells no figures for {missing_s:.0f} s; {GOES_ON}")
