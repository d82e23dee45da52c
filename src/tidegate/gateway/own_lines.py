"""The header lines that are ours on an answer: whose request it was, who answered, what it took."""

from __future__ import annotations

from tidegate.gateway.attempt import Attempt


def attempt_lines(attempt: Attempt, arrived_at: float, attempts: int, altered: str, has_waited: bool) -> bytes:
    """Of the attempt whose answer it is. ``attempts``: how many there were, told where it was more than one, so that a
    client does not try again what was tried here. ``altered``: what was changed in the request at arrival."""
    admit, pool = attempt.admit, attempt.pool
    if pool is None:
        return b""
    lines = pool.replica_header
    if has_waited:
        lines += b"x-tidegate-queue-ms: %d\r\n" % ((admit.permit.admitted_at - arrived_at) * 1000)
    if attempts > 1:
        lines += b"x-tidegate-attempts: %d\r\n" % attempts
    degraded = admit.degraded or altered
    if degraded:
        lines += b"x-tidegate-degraded: %b\r\n" % degraded.encode()
    return lines
