"""Jobs over HTTP: 202 at the door, then GET, DELETE and a callback."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from tidegate.gateway.access import Access
from tidegate.gateway.call import Call
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.intake import RejectedError
from tidegate.gateway.job import Job, JobState
from tidegate.gateway.job_document import document, poll_after_s
from tidegate.gateway.job_watch import MOST_WAIT_S, JobWatch
from tidegate.gateway.jobs import Jobs, Start
from tidegate.gateway.local_answers import LocalAnswers, OwnAnswer
from tidegate.gateway.preference import Preference, preference, wait_s
from tidegate.gateway.recording import others
from tidegate.gateway.reply import JSON_LINE, Reply
from tidegate.gateway.seat import Seat
from tidegate.gateway.shared import Shared
from tidegate.gateway.weighing import Holder
from tidegate.policy.job_accounts import JobsConfig
from tidegate.policy.request import Request
from tidegate.wire.errors import Mistake
from tidegate.wire.header_names import LOCATION, ORIGINAL_REQUEST_ID, PREFERENCE_APPLIED, RETRY_AFTER
from tidegate.wire.requests import Incoming

PATH = b"/v1/jobs"
RESULT = b"/result"
MOST_LISTED = 100

TellUrl = Callable[[str, str, bytes], None]
"""Takes the URL, the id of the message and its body."""


class JobAnswers:
    """Reads what clients want of jobs, and writes what they get."""

    def __init__(self, shared: Shared, answers: LocalAnswers, start: Start, call_back: TellUrl) -> None:
        self._jobs = Jobs(shared, JobsConfig(), start, answers.next_number, self)
        self._access = Access((), ())
        self._callback_origins: tuple[str, ...] = ()
        self.watched: dict[JobWatch, None] = {}
        """Some may have had their answer."""
        self._answers = answers
        self._call_back = call_back
        self._now = shared.driver.now

    @property
    def jobs(self) -> Jobs:
        return self._jobs

    def serve(self, access: Access, config: JobsConfig, callback_origins: tuple[str, ...]) -> None:
        """Who may ask, and where callbacks may go (scheme, host and port), from here on."""
        self._access = access
        self._jobs.reconfigure(config)
        self._callback_origins = callback_origins

    def owns(self, path: bytes) -> bool:
        """``path`` is about jobs. Where there are none it passes through like any other."""
        return self._jobs.config.enabled and (path == PATH or path.startswith(PATH + b"/"))

    # ---- a job is wanted --------------------------------------------------------------------

    def wanted(self, incoming: Incoming) -> Preference | None:
        """None: the client waits for its answer. Raises ``RejectedError``."""
        if not self._jobs.config.enabled:
            return None
        try:
            found = preference(incoming)
            if found is not None and found.callback is not None:
                _check_callback(found.callback, self._callback_origins)
        except ValueError as error:
            raise RejectedError(Mistake.BAD_HEADER, str(error)) from None
        return found

    def accept(self, holder: Holder, reply: Reply, call: Call, request: Request, wanted: Preference) -> None:
        """Make a job of a call. Raises ``RejectedError`` when there is no room."""
        self._jobs.accept(holder, reply, call, request, wanted)

    def accepted(self, job: Job, seat: Seat) -> None:
        """Part of ``jobs.Voice``."""
        seat.reply.whole(202, self._lines_of(job, job.request_id), self._body(job, with_response=False))

    def ended(self, job: Job) -> None:
        """Part of ``jobs.Voice``: without the result, which whoever is called fetches under the client's own key."""
        data = document(job, self._jobs.config.max_age_s, self._now(), with_response=False)
        event = {"type": f"job.{job.status.value}", "created_at": int(job.ended_unix), "data": data}
        self._call_back(job.callback or "", job.id, msgspec.json.encode(event))

    def _lines_of(self, job: Job, request_id: bytes) -> bytes:
        location = PATH + b"/" + job.id.encode()
        lines = JSON_LINE + b"x-request-id: %b\r\n%b: %b\r\n" % (request_id, LOCATION, location)
        waits = b"%b: %d\r\n" % (RETRY_AFTER, poll_after_s(job, self._now()))
        return lines + waits + b"%b: respond-async\r\n" % PREFERENCE_APPLIED

    # ---- a job is asked for -----------------------------------------------------------------

    def take(self, connection: ClientConnection, incoming: Incoming, path: bytes) -> None:
        """Answer a call for ``path``, which is ``PATH`` or below it. Raises ``RejectedError``."""
        tenant = self._access.tenant(incoming.fields)
        if tenant is None:
            raise RejectedError(Mistake.NO_KEY)
        name = path.removeprefix(PATH).strip(b"/")
        is_result = name.endswith(RESULT)
        job_id = name.removesuffix(RESULT).decode("latin-1")
        if incoming.method in (b"GET", b"HEAD"):
            if is_result:
                self._give_result(connection, incoming, self._jobs.find(tenant, job_id))
            elif job_id:
                self._watch(connection, incoming, self._jobs.find(tenant, job_id))
            else:
                self._give_list(connection, incoming, tenant)
        elif incoming.method == b"DELETE" and job_id and not is_result:
            self._delete(connection, incoming, self._jobs.find(tenant, job_id))
        else:
            raise RejectedError(Mistake.WRONG_METHOD, "use GET, or DELETE on a job")

    def _watch(self, connection: ClientConnection, incoming: Incoming, job: Job) -> None:
        """Give the job, at its end if the client waits for that (``Prefer: wait=20``)."""
        waits_s = min(MOST_WAIT_S, wait_s(incoming)) if job.state is None else 0.0
        if waits_s:
            self.watched[JobWatch(connection, incoming, job, self._now() + waits_s, self._give_job)] = None
        else:
            self._give_job(connection, incoming, job)

    def tick(self, now: float) -> None:
        """Called every ``tick_s`` while anybody watches a job."""
        for watch in tuple(self.watched):
            if watch not in watch.job.watches:
                del self.watched[watch]
            elif now >= watch.until:
                del self.watched[watch]
                watch.over()

    def _give_job(self, connection: ClientConnection, incoming: Incoming, job: Job) -> None:
        lines = b"" if job.state is not None else b"%b: %d\r\n" % (RETRY_AFTER, poll_after_s(job, self._now()))
        body = self._body(job, with_response=True)
        self._answers.give(connection, incoming, OwnAnswer(200, body, lines=lines, is_recorded=False))

    def _give_result(self, connection: ClientConnection, incoming: Incoming, job: Job) -> None:
        """As it would have been given at once: status, header lines and body, byte for byte."""
        audience = job.audience
        if job.state is None or audience is None:
            wait_s = None if job.state is JobState.CANCELLED else float(poll_after_s(job, self._now()))
            raise RejectedError(Mistake.JOB_UNFINISHED, f"it is {job.status.value}", None, wait_s)
        reply = self._answers.reply(connection, incoming)
        reply.omits_body = incoming.method == b"HEAD"
        _, request_id = self._answers.number(incoming)
        lines = others(audience.lines) + b"x-request-id: %b\r\n" % request_id
        reply.whole(audience.status, lines + b"%b: %b\r\n" % (ORIGINAL_REQUEST_ID, job.request_id), audience.body)
        connection.exchange_over(reply.keeps_alive, self._now())

    def _give_list(self, connection: ClientConnection, incoming: Incoming, tenant: str) -> None:
        jobs = self._jobs.of_tenant(tenant)
        age_s, now = self._jobs.config.max_age_s, self._now()
        data = [document(job, age_s, now, with_response=False) for job in jobs[:MOST_LISTED]]
        body = msgspec.json.encode({"object": "list", "data": data, "has_more": len(jobs) > MOST_LISTED})
        self._answers.give(connection, incoming, OwnAnswer(200, body, is_recorded=False))

    def _delete(self, connection: ClientConnection, incoming: Incoming, job: Job) -> None:
        was_over = job.state is not None
        self._jobs.cancel(job)
        found = {"id": job.id, "object": "job", "deleted": True}
        body = msgspec.json.encode(found) if was_over else self._body(job, with_response=False)
        self._answers.give(connection, incoming, OwnAnswer(200, body, is_recorded=False))

    def _body(self, job: Job, *, with_response: bool) -> bytes:
        return msgspec.json.encode(document(job, self._jobs.config.max_age_s, self._now(), with_response=with_response))


def _check_callback(url: str, origins: tuple[str, ...]) -> None:
    """Raises ``ValueError`` unless ``url`` goes to one of ``origins``: the gateway stands inside networks in which
    a client could otherwise have it call whatever it likes."""
    if not origins:
        raise ValueError("x-tidegate-callback is not allowed here: callbacks.origins is empty")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("x-tidegate-callback must be a URL")
    parts = urlsplit(url)
    if f"{parts.scheme}://{parts.netloc}".lower() not in origins:
        raise ValueError("x-tidegate-callback must go to one of callbacks.origins, written as there")
