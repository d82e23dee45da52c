"""Jobs: accepted, parked, offered, kept until their clients come, or cancelled.

A client at the door waits as long as it said for the answer itself. When that comes, it gets it and there
never was a job; otherwise it gets the job's id, and the request goes on without it. What is refused for
want of room is offered again when the refusal says so, as a patient client would.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tidegate.gateway import error_answer
from tidegate.gateway.audience import Audience
from tidegate.gateway.call import Call
from tidegate.gateway.intake import RejectedError
from tidegate.gateway.job import Job, JobAudience, JobState
from tidegate.gateway.preference import Preference
from tidegate.gateway.reply import JSON_LINE, Reply, header_lines
from tidegate.gateway.seat import Seat
from tidegate.gateway.shared import Shared
from tidegate.gateway.weighing import Holder
from tidegate.lens.edge import Edge
from tidegate.policy.classes import BATCH, CRITICALITIES, LONG
from tidegate.policy.decisions import Reason, Refuse
from tidegate.policy.job_accounts import JobAccounts, JobsConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.parking import Parking
from tidegate.policy.request import NEVER, Request
from tidegate.wire.errors import MISTAKES, Mistake
from tidegate.wire.header_names import RETRY_AFTER, RETRY_AFTER_MS

FULL_S = 10.0
"""When a client may come back that found no room for its job."""
SOONEST_S = 0.5
"""Between two offers of one job."""
BUSY = frozenset({429, 503})
MOST_EXPIRED = 10_000
"""Ids of jobs that were kept as long as results are; older ones are unknown."""

Start = Callable[[Holder, Call, Request, Reply], None]


class Voice(Protocol):
    """Tells clients of their jobs."""

    def accepted(self, job: Job, seat: Seat) -> None:
        """The client at the door gets a job."""

    def ended(self, job: Job) -> None:
        """It has an end, and wants somebody to be told."""


class Jobs:
    """Every job of this process. ``start`` sets a request going; ``number`` numbers it."""

    def __init__(
        self, shared: Shared, config: JobsConfig, start: Start, number: Callable[[], int], voice: Voice
    ) -> None:
        self._shared = shared
        self.config = config
        self._start = start
        self._number = number
        self._accounts = JobAccounts(config)
        self._parking: Parking[Job] = Parking()
        self._jobs: dict[str, dict[str, Job]] = {}
        """By tenant and id."""
        self._expired: dict[str, tuple[str, float]] = {}
        """By id: tenant, and until when that is remembered."""
        self.most_expired = MOST_EXPIRED
        self._at_door: set[Job] = set()
        self._offered: set[Job] = set()
        self._open: dict[Job, None] = {}
        """Those that are not over, in the order in which they came."""
        self._ended: dict[Job, None] = {}
        """In the order in which they ended."""
        self._is_offering = False
        self._voice = voice

    # ---- what clients ask -------------------------------------------------------------------

    def accept(self, holder: Holder, reply: Reply, call: Call, request: Request, wanted: Preference) -> None:
        """Make a job. Raises ``RejectedError`` when there is no room."""
        config, tenant, now = self.config, request.tenant, request.arrived_at
        held_bytes = len(call.incoming.body) + config.max_result_bytes
        short = self._accounts.shortage(tenant, held_bytes)
        if short:
            detail = f"{short} is reached; delete a job that has ended, or come back"
            raise RejectedError(Mistake.JOBS_FULL, detail, None, FULL_S)
        job = Job(self, f"job_{os.urandom(16).hex()}", call, _as_job(request), time.time())
        job.callback, job.held_bytes = wanted.callback, held_bytes
        job.give_up_at = now + config.max_wait_s
        job.door_until = now + min(wanted.wait_s, config.max_wait_s)
        job.seat = Seat(job, holder, reply, call, request)
        self._accounts.take(tenant, held_bytes)
        self._open[job] = None
        self._jobs.setdefault(tenant, {})[job.id] = job
        self._at_door.add(job)
        job.seat.take()
        self._parking.park(tenant, job)
        self._offer(now)
        if now >= job.door_until and job in self._at_door:
            self._part(job, now)

    def find(self, tenant: str, job_id: str) -> Job:
        """Raises ``RejectedError`` when it is unknown or has expired."""
        job = self._jobs.get(tenant, {}).get(job_id)
        if job is not None and job.is_told:
            return job
        if self._expired.get(job_id, ("", 0.0))[0] == tenant:
            raise RejectedError(Mistake.JOB_EXPIRED, f"{self.config.max_age_s:.0f} s after its end")
        raise RejectedError(Mistake.NO_JOB)

    def of_tenant(self, tenant: str) -> list[Job]:
        """The newest first."""
        return [job for job in reversed(self._jobs.get(tenant, {}).values()) if job.is_told]

    def cancel(self, job: Job) -> None:
        """End it if it is not over, so that its engine is told; forget it if it is."""
        now = self._shared.driver.now()
        if job.state is not None:
            self._forget(job)
            return
        self._withdraw(job, Outcome.CLIENT_LEFT)
        self._end(job, JobState.CANCELLED, now)

    # ---- the clock --------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """``tick`` has something to look at."""
        return bool(self._offered or self._at_door or len(self._parking))

    def tick(self, now: float) -> None:
        """Called every ``tick_s`` while it is busy."""
        for job in tuple(self._at_door):
            if now >= job.give_up_at and job not in self._offered:
                self._give_up(job, Reason.QUEUE_TIMEOUT, now)
            elif now >= job.door_until:
                self._part(job, now)
        for job in tuple(self._offered):
            audience = job.audience
            if audience is not None and audience.is_too_long and not job.is_live:
                self._withdraw(job, Outcome.CLIENT_LEFT)
                self._fail(job, Mistake.RESULT_TOO_LARGE, now)
        self._offer(now)

    def sweep(self, now: float) -> None:
        """Called about once a second."""
        for job in tuple(self._open):
            if job.give_up_at > now:
                break
            if job not in self._offered:
                self._give_up(job, Reason.QUEUE_TIMEOUT, now)
        while self._ended:
            job = next(iter(self._ended))
            if job.ended_at + self.config.max_age_s > now:
                break
            self._expire(job, now)
        self._forget_expired(now)

    def _forget_expired(self, now: float) -> None:
        while self._expired:
            job_id, (_, until) = next(iter(self._expired.items()))
            if until > now and len(self._expired) <= self.most_expired:
                break
            del self._expired[job_id]

    def drain(self, now: float) -> None:
        """Nothing is offered any more: what is parked has failed, and its client is told so when it asks."""
        for job in tuple(self._open):
            if job not in self._offered:
                self._give_up(job, Reason.SHUTTING_DOWN, now)

    def reconfigure(self, config: JobsConfig) -> None:
        """New bounds; what is there stays."""
        self.config = self._accounts.config = config

    def view(self) -> dict[str, int]:
        """Figures for gauges and tests."""
        accounts = self._accounts
        held = {"jobs": accounts.jobs, "held_bytes": accounts.held_bytes}
        return {**held, "parked": len(self._parking), "offered": len(self._offered), "at_door": len(self._at_door)}

    # ---- offering ---------------------------------------------------------------------------

    def _offer(self, now: float) -> None:
        """Offer those whose turn it is. An offer may end at once, which lets in the next; never by recursion."""
        if self._is_offering or self._shared.is_draining:
            return
        self._is_offering = True
        try:
            while len(self._offered) < self.config.max_offered:
                job = self._parking.take(now)
                if job is None:
                    break
                self._offer_one(job, now)
        finally:
            self._is_offering = False

    def _offer_one(self, job: Job, now: float) -> None:
        call = job.call
        if call is None:
            raise ValueError(f"{job.id} is over and cannot be offered")
        if job.audience is not None:
            job.request = replace(job.request, id=self._number(), arrived_at=now)
        job.request.max_wait_s = max(0.0, job.give_up_at - now)
        job.audience = JobAudience(self, job, self.config.max_result_bytes)
        self._offered.add(job)
        self._start(job.audience, call, job.request, job.audience)

    def _offered_no_more(self, job: Job) -> None:
        self._offered.discard(job)
        self._parking.over(job.tenant)

    # ---- the client at the door -------------------------------------------------------------

    def _part(self, job: Job, now: float) -> None:
        """It has waited as long as it wanted: it gets the job's id."""
        seat, job.seat = job.seat, None
        self._at_door.discard(job)
        if seat is not None:
            job.is_told = True
            self._voice.accepted(job, seat)
            seat.over(now)

    def door_left(self, job: Job) -> None:
        """Part of ``job.JobOwner``."""
        job.seat = None
        self._at_door.discard(job)
        self._withdraw(job, Outcome.CLIENT_LEFT)
        self._forget(job)

    # ---- as the owner of audiences ----------------------------------------------------------

    def answer_begins(self, audience: JobAudience) -> None:
        """Part of ``job.JobOwner``: whoever still waits gets it as it comes."""
        job = audience.job
        seat = job.seat
        if seat is not None:
            self._at_door.discard(job)
            job.is_live = True
            audience.join(seat)

    def audience_left(self, audience: Audience) -> None:
        """Part of ``audience.Owner``: an accepted job runs without anybody."""

    def seat_left(self, audience: Audience, seat: Seat) -> None:
        """Part of ``audience.Owner``."""

    def answer_over(self, audience: Audience, seats: list[Seat], now: float) -> None:
        """Part of ``audience.Owner``."""
        del seats  # The one seat there may be is the job's.
        if not isinstance(audience, JobAudience):
            return
        job = audience.job
        self._offered_no_more(job)
        retry_after_s = _retry_after_s(audience)
        if job.is_live:
            self._forget(job)
        elif retry_after_s is not None and now + retry_after_s < job.give_up_at and not self._shared.is_draining:
            self._parking.park_until(job.tenant, job, now + retry_after_s)
        elif job.seat is not None:
            seat, job.seat = job.seat, None
            self._at_door.discard(job)
            audience.play(seat.reply, audience.lines)
            self._forget(job)
            seat.over(now)
        else:
            is_done = audience.is_complete and audience.status < 400
            self._end(job, JobState.DONE if is_done else JobState.FAILED, now)
        self._offer(now)

    # ---- the end ----------------------------------------------------------------------------

    def _withdraw(self, job: Job, outcome: Outcome) -> None:
        """Take it out of wherever it is; an engine that works at it is told."""
        if job in self._offered:
            self._offered_no_more(job)
            if job.audience is not None:
                job.audience.abandon()
        else:
            self._parking.drop(job.tenant, job)
            self._note(job, None, outcome)

    def _give_up(self, job: Job, reason: Reason, now: float) -> None:
        """It was parked for too long, or the process drains."""
        self._parking.drop(job.tenant, job)
        self._note(job, reason, None)
        error = error_answer.refused(Refuse(reason, None))
        self._say(job, error.status, header_lines(error.headers), error.body)
        seat, job.seat = job.seat, None
        self._at_door.discard(job)
        if seat is None:
            self._end(job, JobState.FAILED, now)
            return
        if job.audience is not None:
            job.audience.play(seat.reply, job.audience.lines)
        self._forget(job)
        seat.over(now)

    def _fail(self, job: Job, mistake: Mistake, now: float) -> None:
        error = MISTAKES[mistake]
        self._say(job, error.status, b"", error.body(mistake.value))
        self._end(job, JobState.FAILED, now)

    def _say(self, job: Job, status: int, lines: bytes, body: bytes) -> None:
        """Our own word in the place of an answer."""
        job.audience = JobAudience(self, job, self.config.max_result_bytes)
        job.audience.whole(status, JSON_LINE + b"x-request-id: %b\r\n" % job.request_id + lines, body)

    def _end(self, job: Job, state: JobState, now: float) -> None:
        job.state, job.ended_at, job.ended_unix, job.call = state, now, time.time(), None
        if state is JobState.CANCELLED:
            job.audience = None
        left_bytes = 0 if job.audience is None else job.audience.size_bytes
        self._accounts.resize(job.tenant, left_bytes - job.held_bytes)
        job.held_bytes = left_bytes
        del self._open[job]
        self._ended[job] = None
        if job.callback is not None:
            self._voice.ended(job)
        for watch in tuple(job.watches):
            watch.over()

    def _forget(self, job: Job) -> None:
        self._open.pop(job, None)
        self._ended.pop(job, None)
        job.is_told, job.seat, job.audience = False, None, None
        jobs = self._jobs[job.tenant]
        del jobs[job.id]
        if not jobs:
            del self._jobs[job.tenant]
        self._accounts.leave(job.tenant, job.held_bytes)
        job.call = None

    def _expire(self, job: Job, now: float) -> None:
        self._forget(job)
        self._expired[job.id] = (job.tenant, now + self.config.max_age_s)

    def _note(self, job: Job, refused: Reason | None, outcome: Outcome | None) -> None:
        """A row for a job that ``Path`` does not know at the moment."""
        record = self._shared.driver.forgo(replace(job.request, id=self._number()))
        record.refused, record.outcome = refused, outcome
        code = "" if refused is None else refused.value
        self._shared.journal.closed(record, Edge(job.request_id.decode("latin-1"), job.path, 0, code))


def _as_job(request: Request) -> Request:
    """As a request of class ``long``, unless it steps down further; nobody waits for its first byte."""
    hint = request.class_hint
    if hint is None or CRITICALITIES.get(hint, hint) != BATCH:
        request.class_hint = LONG
    request.first_byte_by = NEVER
    if request.key is None:
        request.key = os.urandom(8).hex()
    return request


def _retry_after_s(audience: Audience) -> float | None:
    """When an answer says that there is no room now; None for any other."""
    if audience.status not in BUSY or not audience.is_whole:
        return None
    for name, unit_s in ((RETRY_AFTER_MS, 1e-3), (RETRY_AFTER, 1.0)):
        told = audience.field(name)[:9]
        if told.isdigit():
            return max(SOONEST_S, int(told) * unit_s)
    return None
