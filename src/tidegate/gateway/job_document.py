"""A job as its client reads it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from tidegate.gateway.job import Job, JobState
from tidegate.wire.header_names import CONTENT_TYPE

LEAST_POLL_S = 1
MOST_POLL_S = 10


def poll_after_s(job: Job, now: float) -> int:
    """When to ask again: a tenth of its age, so that a poll adds no more than that to it."""
    return min(MOST_POLL_S, max(LEAST_POLL_S, round((now - job.accepted_at) / 10)))


def document(job: Job, max_age_s: float, now: float, *, with_response: bool) -> dict[str, Any]:
    """Times are Unix seconds. ``response`` has the shape that OpenAI's batches give it."""
    status = job.status
    is_over = job.state is not None
    found: dict[str, Any] = {
        "id": job.id,
        "object": "job",
        "status": status.value,
        "endpoint": job.path,
        "model": job.request.upstream,
        "request_id": job.request_id.decode("latin-1"),
        "created_at": int(job.created_unix),
        "finished_at": int(job.ended_unix) if is_over else None,
        "expires_at": int(job.ended_unix + max_age_s) if is_over else None,
        "poll_after_s": None if is_over else poll_after_s(job, now),
    }
    if with_response:
        found["response"], found["error"] = _response(job), _error(job)
    return found


def _response(job: Job) -> dict[str, Any] | None:
    audience = job.audience
    if job.state is None or audience is None:
        return None
    body = audience.body
    is_json = audience.field(CONTENT_TYPE).startswith(b"application/json") and _is_json(body)
    return {
        "status_code": audience.status,
        "request_id": job.request_id.decode("latin-1"),
        "body": Raw(body) if is_json else body.decode("utf-8", "replace"),
    }


def _error(job: Job) -> Any:
    """The error object of an answer that is one; a plain word for one that broke off."""
    audience = job.audience
    if job.state is not JobState.FAILED or audience is None:
        return None
    try:
        found = msgspec.json.decode(audience.body)["error"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return {"code": "incomplete", "message": "the answer ended before it was complete"}
    return found


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=Raw)
    except msgspec.DecodeError:
        return False
    return True
