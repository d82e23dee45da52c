"""What a client's headers say about how long it waits and how its request is to be treated, and what of it goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.wire import header_names as names

_GRPC_UNITS_S = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_GRPC_TIMEOUT = re.compile(rb"(\d{1,8})([HMSmun])")
LONGEST_WAIT_S = 7 * 24 * 3600.0
"""A week; longer waits are taken for none, and keep the arithmetic finite."""

TIER_CLASSES = {
    "flex": "batch",
    "batch": "batch",
    "priority": "interactive",
    "fast": "interactive",
    "scale": "interactive",
}
"""OpenAI's ``service_tier`` as a service class; ``auto``, ``default`` and what is unknown say nothing."""


@dataclass(slots=True)
class Hints:
    """``None``: the client said nothing."""

    deadline_s: float | None = None
    """From arrival; the answer is worthless afterwards."""
    first_byte_s: float | None = None
    """From arrival; the client leaves if nothing has come."""
    service_class: str | None = None
    session: str | None = None


def hints(fields: dict[bytes, bytes]) -> Hints:
    """Read them. Raises ``ValueError`` naming the header that can't be understood."""
    found = Hints()
    if names.GRPC_TIMEOUT in fields:
        found.deadline_s = _grpc_timeout_s(fields[names.GRPC_TIMEOUT])
    if names.DEADLINE_MS in fields:
        deadline_s = _seconds(names.DEADLINE_MS, fields, 1e-3)
        found.deadline_s = deadline_s if found.deadline_s is None else min(deadline_s, found.deadline_s)
    if names.STAINLESS_READ_TIMEOUT in fields:
        found.first_byte_s = _read_timeout_s(fields)
    found.service_class = _text(fields, names.SERVICE_CLASS)
    found.session = _text(fields, names.SESSION)
    return found


def deadline_lines(left_s: float, fields: dict[bytes, bytes]) -> bytes:
    """Header lines that tell an engine, or the next gateway, how much of the client's deadline is left.

    Rounded down, so that it stops no later than we do; in gRPC's syntax too where the client (``fields``) used it.
    """
    left_ms = max(1, int(left_s * 1000))
    lines = b"%b: %d\r\n" % (names.DEADLINE_MS, left_ms)
    if names.GRPC_TIMEOUT in fields:
        # Eight digits are all that its syntax has.
        timeout = b"%dm" % left_ms if left_ms < 100_000_000 else b"%dS" % (left_ms // 1000)
        lines += b"%b: %b\r\n" % (names.GRPC_TIMEOUT, timeout)
    return lines


def _seconds(name: bytes, fields: dict[bytes, bytes], unit_s: float) -> float:
    try:
        value_s = float(fields[name]) * unit_s
    except ValueError:
        value_s = -1.0
    # Written so that NaN is refused too.
    if not 0.0 < value_s < float("inf"):
        raise ValueError(f"{name.decode()} must be a positive number")
    return min(value_s, LONGEST_WAIT_S)


def _read_timeout_s(fields: dict[bytes, bytes]) -> float | None:
    # The JavaScript client may send no number at all when the user turned its timeout off.
    try:
        return _seconds(names.STAINLESS_READ_TIMEOUT, fields, 1.0)
    except ValueError:
        return None


def _grpc_timeout_s(value: bytes) -> float:
    match = _GRPC_TIMEOUT.fullmatch(value.strip())
    if match is None:
        raise ValueError("grpc-timeout must be up to 8 digits and one of H M S m u n")
    return min(int(match[1]) * _GRPC_UNITS_S[match[2]], LONGEST_WAIT_S)


def _text(fields: dict[bytes, bytes], name: bytes) -> str | None:
    value = fields.get(name)
    return value.decode("latin-1").strip()[:128] if value else None
