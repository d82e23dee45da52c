"""The ways in which an engine can misbehave, as one closed set."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """What ``faulty_upstream`` does to requests for answers. Its health page stays well, unless nothing is there."""

    NONE = "none"
    HANG = "hang"
    """It takes requests and sends nothing."""
    STALL = "stall"
    """Streams begin and stop after a few tokens, the connection open; whole answers never come."""
    CUT = "cut"
    """The connection is closed properly (FIN) in the middle of the answer."""
    RESET = "reset"
    """The connection is reset (RST) in the middle of the answer."""
    CLOSE = "close"
    """The connection is closed when the request has been read, before any answer."""
    ERROR_500 = "error-500"
    """Every request is answered 500 at once."""
    BUSY_429 = "busy-429"
    """Every request is answered 429 at once, with ``retry-after: 1``."""
    SLOW = "slow"
    """Everything takes ten times as long."""
    GARBAGE_HTTP = "garbage-http"
    """Bytes that are no HTTP."""
    GARBAGE_BODY = "garbage-body"
    """Status 200 and a body, or events, that are no JSON; a stream ends with [DONE] all the same."""
    ERROR_EVENT = "error-event"
    """An error as an event in the middle of a stream; a whole answer is a 500."""
    ENDLESS_HEAD = "endless-head"
    """Header lines that never end."""
    REFUSE = "refuse"
    """Nobody listens: connections are refused, and those that were open are reset."""


SLOW_FACTOR = 10.0
AFTER_TOKENS = 3
"""So much of a stream comes before it is stopped, cut or reset."""
