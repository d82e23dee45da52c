"""A client that asked for a job and waits a while for its end."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.job import Job
from tidegate.wire.requests import Incoming

MOST_WAIT_S = 60.0
"""Load balancers commonly end a silent connection after 60 s."""


class JobWatch:
    """Stands in the place of an exchange on the connection. ``answer`` is called once, unless the client leaves."""

    __slots__ = ("_answer", "_connection", "_incoming", "job", "until")

    def __init__(
        self,
        connection: ClientConnection,
        incoming: Incoming,
        job: Job,
        until: float,
        answer: Callable[[ClientConnection, Incoming, Job], None],
    ) -> None:
        self._connection = connection
        self._incoming = incoming
        self._answer = answer
        self.job = job
        self.until = until
        job.watches.add(self)
        connection.attach(self)

    def over(self) -> None:
        """The job has ended, or the time is up."""
        self.job.watches.discard(self)
        self._answer(self._connection, self._incoming, self.job)

    # ---- as a Running -----------------------------------------------------------------------

    def client_left(self) -> None:
        """Part of ``Running``."""
        self.job.watches.discard(self)

    def pause(self) -> None:
        """Part of ``Running``: nothing is sent meanwhile."""

    def resume(self) -> None:
        """Part of ``Running``."""

    def tick(self, now: float) -> None:
        """Part of ``Running``: ``JobAnswers`` looks at the clock for all of them."""

    def refuse_waiting(self) -> None:
        """Part of ``Running``: the job's end is told to it."""

    def stop(self) -> None:
        """Part of ``Running``: the connection is closed."""
