"""One job: a request whose client comes back for the answer."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from tidegate.gateway.audience import Audience, Owner
from tidegate.gateway.call import Call
from tidegate.gateway.exchange import Exchange
from tidegate.gateway.seat import Seat
from tidegate.policy.request import Request
from tidegate.wire.sse import HEARTBEAT


class JobState(Enum):
    """What a client is told of it."""

    QUEUED = "queued"
    """Parked, or in the queue."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Watch(Protocol):
    """Somebody who waits for a job's end."""

    def over(self) -> None:
        """It has ended."""


class JobOwner(Owner, Protocol):
    """Whose jobs they are."""

    def answer_begins(self, audience: JobAudience) -> None:
        """The first bytes of an answer that comes in pieces are there."""

    def door_left(self, job: Job) -> None:
        """The client that waited for the answer, or got it as it came, is gone."""


class JobAudience(Audience):
    """Of one offer of a job. Heartbeats are nobody's business: they would commit an answer that may still be no."""

    __slots__ = ("_jobs", "job")

    def __init__(self, owner: JobOwner, job: Job, most_bytes: int) -> None:
        super().__init__(owner, job.request_id, most_bytes)
        self._jobs = owner
        self.job = job

    def open(self, status: int, headers: bytes, length: bytes | None, first: bytes) -> None:
        """Part of ``Reply``."""
        if first == HEARTBEAT:
            return
        super().open(status, headers, length, first)
        self._jobs.answer_begins(self)

    @property
    def is_running(self) -> bool:
        """An engine works at it, or is about to."""
        running = self.running
        return isinstance(running, Exchange) and running.ticket is None


class Job:
    """Known by its id to its tenant alone. Times without ``_unix`` are on the loop's clock."""

    __slots__ = (
        "_owner",
        "accepted_at",
        "audience",
        "call",
        "callback",
        "created_unix",
        "door_until",
        "ended_at",
        "ended_unix",
        "give_up_at",
        "held_bytes",
        "id",
        "is_live",
        "is_told",
        "path",
        "request",
        "request_id",
        "seat",
        "state",
        "watches",
    )

    def __init__(self, owner: JobOwner, job_id: str, call: Call, request: Request, created_unix: float) -> None:
        self._owner = owner
        self.id = job_id
        self.call: Call | None = call
        """None once it is over: the body is needed no longer."""
        self.request = request
        """As it was offered last."""
        self.request_id = call.request_id
        self.path = call.route.path
        self.accepted_at = request.arrived_at
        self.give_up_at = 0.0
        """When it has waited long enough for a place."""
        self.created_unix = created_unix
        self.ended_at = 0.0
        self.ended_unix = 0.0
        self.state: JobState | None = None
        """None while it is not over."""
        self.audience: JobAudience | None = None
        """Of the offer that runs, or of the one that ended it."""
        self.seat: Seat | None = None
        """The client that still waits, at the door: it gets the answer, or a job."""
        self.door_until = 0.0
        self.is_live = False
        """The client gets the answer as it comes, and never learns of a job."""
        self.is_told = False
        """The client knows its id."""
        self.watches: set[Watch] = set()
        """Clients that wait for its end."""
        self.callback: str | None = None
        self.held_bytes = 0

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.request.tenant

    @property
    def status(self) -> JobState:
        """Whatever it is now."""
        if self.state is not None:
            return self.state
        audience = self.audience
        return JobState.RUNNING if audience is not None and audience.is_running else JobState.QUEUED

    # ---- as the hall of the one seat ----------------------------------------------------------

    def keep_pace(self) -> None:
        """Part of ``seat.Hall``."""
        if self.is_live and self.audience is not None:
            self.audience.keep_pace()

    def leave(self, seat: Seat) -> None:
        """Part of ``seat.Hall``."""
        del seat  # There is but one.
        self._owner.door_left(self)
