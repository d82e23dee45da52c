"""OpenAI's rate-limit headers: how much a tenant may use in a minute, what is left, when all of it is back."""

from __future__ import annotations

from tidegate.policy.quota import RateLimits
from tidegate.wire import header_names as names


def rate_lines(limits: RateLimits) -> bytes:
    """Header lines, each ended; none for a rate that is not bounded."""
    lines = b""
    if limits.requests_limit:
        lines += _lines(names.RATE_REQUESTS, limits.requests_limit, limits.requests_left, limits.requests_full_s)
    if limits.tokens_limit:
        lines += _lines(names.RATE_TOKENS, limits.tokens_limit, limits.tokens_left, limits.tokens_full_s)
    return lines


def _lines(kinds: tuple[bytes, bytes, bytes], limit: int, left: int, full_s: float) -> bytes:
    return b"%b: %d\r\n%b: %d\r\n%b: %b\r\n" % (kinds[0], limit, kinds[1], left, kinds[2], duration(full_s))


def duration(seconds: float) -> bytes:
    """As OpenAI writes it: ``120ms``, ``8.64s``, ``6m0s``, ``1h0m12s``."""
    if seconds < 1.0:
        return b"%dms" % round(seconds * 1000)
    if seconds < 60.0:
        return f"{round(seconds, 2):g}s".encode()
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return b"%dh%dm%ds" % (hours, minutes, rest_s) if hours else b"%dm%ds" % (minutes, rest_s)
