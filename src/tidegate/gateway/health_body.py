"""What ``GET /v1/health`` and ``GET /v1/health/MODEL`` say: how a model is doing, without asking any engine."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import msgspec

from tidegate.gateway.driver import Driver
from tidegate.policy.decisions import Reason
from tidegate.wire.errors import REFUSALS

PREFIX = b"/v1/health"
CACHE_LINES = b"cache-control: max-age=1\r\n"
"""Asked before every call of an agent, it must not be a request more: a second old is young enough (SPEC S0-57)."""


def health_body(driver: Driver, path: bytes) -> tuple[bytes, str]:
    """The answer to ``path``, and the code of the error that it is, if any."""
    name = unquote_to_bytes(path.removeprefix(PREFIX).strip(b"/")).decode("utf-8", "replace")
    if not name:
        return msgspec.json.encode({"object": "list", "data": driver.healths()}), ""
    report = driver.health(name)
    if report is not None:
        return msgspec.json.encode(report), ""
    reason = Reason.UNKNOWN_MODEL
    return REFUSALS[reason].body(reason.value, param="model"), reason.value
