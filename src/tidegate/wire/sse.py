"""Server-sent events: watched as they pass, and the few that we send ourselves.

The stream's bytes are never changed and never parsed as JSON; what is needed is found by
searching for byte patterns. Inside a JSON string every quote is escaped, so a pattern with
quotes on both sides can't match what a model wrote.
"""

from __future__ import annotations

import re

HEARTBEAT = b": waiting\n\n"
"""A comment: clients ignore it, and proxies between us see that the stream lives."""
DONE_EVENT = b"data: [DONE]\n\n"

PROMPT_TOKENS = b'"prompt_tokens"'
COMPLETION_TOKENS = b'"completion_tokens"'
LONGEST_EVENT_BYTES = 4 << 20
"""An unfinished event above this is no longer watched, only forwarded."""

_COUNT = re.compile(rb"\s*:\s*(\d{1,9})")
_ERROR_EVENT = re.compile(rb'(?:^|\n)(?:event: ?error\r?\n|data: ?\{\s*"error"\s*:(?!\s*null))')
_DONE = re.compile(rb"(?:^|\n)data: ?\[DONE\]\s*$")
_EVENT_END = re.compile(rb"\n\r?\n")


def usage_count(text: bytes, name: bytes) -> int | None:
    """The last number under the key ``name`` (given with its quotes); None where there is none."""
    at = text.rfind(name)
    if at < 0:
        return None
    found = _COUNT.match(text, at + len(name))
    return int(found[1]) if found is not None else None


class EventScan:
    """Watches one stream. The result does not depend on where reads split the bytes."""

    __slots__ = ("_last", "_unfinished", "completion_tokens", "error_ends_at", "events", "prompt_tokens")

    def __init__(self) -> None:
        self.events = 0
        """Complete ``data`` events before any error, ``[DONE]`` and usage among them."""
        self.prompt_tokens: int | None = None
        """As the engine counted them; None until it says."""
        self.completion_tokens: int | None = None
        self.error_ends_at: int | None = None
        """Set by the ``feed`` that met an error event: how many bytes of that read belong to the
        stream up to the end of the error."""
        self._unfinished = b""
        self._last = b""

    @property
    def is_between_events(self) -> bool:
        """A comment or an event of ours can go out here without breaking one of the engine's."""
        return not self._unfinished

    @property
    def unfinished_bytes(self) -> int:
        """Of an event whose end has not come."""
        return len(self._unfinished)

    @property
    def is_done(self) -> bool:
        """The last thing that came is ``[DONE]``."""
        return _DONE.search(self._last + self._unfinished) is not None

    def feed(self, piece: bytes) -> int:
        """Watch one read; how many ``data`` events became complete in it."""
        whole = piece
        if self._unfinished:
            whole = self._unfinished + piece
        if whole.endswith(b"\n\n"):
            self._unfinished = b""
        else:
            whole = self._split(whole)
            if not whole:
                return 0
        # ``in`` makes and drops an exception for every bytes it looks for (CPython 3.11); ``find`` does not.
        if whole.find(b"error") >= 0 and self.error_ends_at is None:
            whole = self._up_to_error(whole, len(piece) - len(whole) - len(self._unfinished))
        self._last = whole
        count = whole.count(b"\ndata:") + whole.startswith(b"data:")
        if whole.find(COMPLETION_TOKENS) >= 0:
            self.completion_tokens = usage_count(whole, COMPLETION_TOKENS)
            self.prompt_tokens = usage_count(whole, PROMPT_TOKENS)
        self.events += count
        return count

    def _split(self, text: bytes) -> bytes:
        """Keep what follows the last complete event; what comes before it."""
        at = max(text.rfind(b"\n\n") + 2, text.rfind(b"\n\r\n") + 3)
        at = 0 if at < 4 else at
        self._unfinished = text[at:] if len(text) - at <= LONGEST_EVENT_BYTES else b""
        return text[:at]

    def _up_to_error(self, whole: bytes, offset: int) -> bytes:
        """What comes before an error event, and note where that ends."""
        found = _ERROR_EVENT.search(whole)
        if found is None:
            return whole
        end = _EVENT_END.search(whole, found.end())
        self.error_ends_at = (end.end() if end else len(whole)) + offset
        return whole[: found.start()]


def before_done(data: bytes) -> bytes:
    """What comes before ``[DONE]`` in a read: an answer that is stopped must not say that it is whole."""
    at = data.rfind(b"data: [DONE]")
    return data if at < 0 else data[:at]


def error_event(body: bytes) -> bytes:
    """The event that ends a stream which cannot be completed. ``body``: see ``wire.errors``."""
    return b"data: %b\n\n" % body
