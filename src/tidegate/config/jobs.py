"""Sections ``jobs`` and ``callbacks``: answers that are fetched later, and who is told when they are there."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Ranged, Section
from tidegate.policy.job_accounts import JobsConfig

Jobs = Annotated[
    JobsConfig,
    Ranged(
        enabled=Field(description="Off: ``Prefer: respond-async`` is passed over, and /v1/jobs passes through."),
        max_wait_s=Field(gt=0),
        max_age_s=Field(gt=0),
        max_offered=Field(ge=1),
        max_jobs=Field(ge=1, description="Jobs, running, parked and ended together."),
        max_tenant_jobs=Field(ge=1),
        max_bytes=(Field(ge=1, description="Memory for the jobs' bodies and results."), *SIZE_TEXT),
        max_tenant_bytes=(Field(ge=1), *SIZE_TEXT),
        max_result_bytes=(Field(ge=1), *SIZE_TEXT),
    ),
]


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or f"{parts.scheme}://{parts.netloc}" != text:
        raise ValueError(f"must be scheme, host and perhaps port, as in https://hooks.example.com, got {text!r}")
    if "@" in text:
        raise ValueError(f"must not hold a user name: {text!r}")
    return text.lower()


class Callbacks(Section):
    """``x-tidegate-callback``: the parent process POSTs there that a job has ended."""

    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()
    """Where callbacks may go. None: nowhere, since a client could otherwise make us call inside our network."""
    secret_env: Annotated[str, Field(min_length=1)] | None = None
    """Variable with the secret that signs them (HMAC-SHA256, Standard Webhooks). None: they are not signed."""
