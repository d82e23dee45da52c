"""What runs on a client's connection, as the connection, the ticker and the end of the process see it."""

from __future__ import annotations

from typing import Protocol


class Running(Protocol):
    """One request, from the moment it was understood to the end of its answer."""

    def pause(self) -> None:
        """The client does not keep up."""

    def resume(self) -> None:
        """The client reads again."""

    def client_left(self) -> None:
        """The client's connection is gone."""

    def tick(self, now: float) -> None:
        """Look at the clock; called every ``tick_s``."""

    def refuse_waiting(self) -> None:
        """The process drains: what has no permit yet is refused."""

    def stop(self) -> None:
        """The process ends: what still runs is cut."""


class Client(Protocol):
    """The connection that asked."""

    def exchange_over(self, keeps_alive: bool, now: float) -> None:
        """The answer is sent; the next request can begin."""
