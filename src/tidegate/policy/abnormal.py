"""Input that is not as it should be: what is looked for, and what is done about it (SPEC S2-39, S0-105).

Every kind has one answer, given before an engine hears of the request:

    empty        no message, no prompt, or nothing but white space               empty_input        refused
    characters   NUL; half of a surrogate pair and bytes that are no UTF-8       invalid_chars      refused
    controls     other control characters, which a terminal's output is full of  invalid_chars      passed on
    repetitive   a long prompt of one short part over and over                   repetitive_input   marked
    over-long    see ``Overlength``                                              context_length_exceeded

Why these defaults: what is refused breaks tokenizers or makes the engine answer 500, so nobody loses by it. Colours
of a terminal and form feeds do no harm. A repetitive prompt is sometimes meant so (a test, a table of zeros), and
loads an engine no more than another of its length: it only often begins an answer that never ends.

The bytes looked at are bounded (``scan_bytes``), and each look is one pass in C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

LONGEST_PERIOD = 1024
_NEEDLES = (64, 512)
"""Bytes from the middle that are looked for behind it, to find a period to try."""
_EDGE_SHARE = 20
"""One part in so many, at either end, may differ: there stand the JSON around the text, and a question after it."""

_NUL = re.compile(rb"\\u0000")
_CONTROL = re.compile(rb"\\u00(?:0[1-8bBcCeEfF]|1[0-9a-fA-F]|7[fF])|\\[bf]")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_RAW_CONTROLS = bytes(code for code in range(32) if code not in (9, 10, 13))


class Handling(StrEnum):
    """What is done about one kind of abnormal input."""

    REJECT = "reject"
    MARK = "mark"
    """Pass it on, and note it in the record."""
    PASS = "pass"


class OnOverlength(StrEnum):
    """What is done about a prompt that is longer than the model's context (SPEC S2-41)."""

    REJECT = "reject"
    """``context_length_exceeded``."""
    TRUNCATE = "truncate"
    """Drop the oldest messages but those of the system, or the middle of the prompt, until it fits."""
    ROUTE_LONG = "route_long"
    """Send it to a model with a longer context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputConfig:
    """What is looked for in requests. The body is looked at once, up to ``scan_bytes``."""

    enabled: bool = True
    """Off: requests go on as they come, as long as they are JSON of the right types."""
    empty: Handling = Handling.REJECT
    """No message, no prompt, or nothing but white space (`empty_input`)."""
    invalid_chars: Handling = Handling.REJECT
    """NUL (`invalid_chars`). Half of a surrogate pair, and bytes that are no UTF-8, are refused always: that is no
    JSON."""
    control_chars: Handling = Handling.PASS
    """Other control characters than tab and line breaks, such as those of a terminal's colours."""
    repetitive: Handling = Handling.MARK
    """A long prompt of one short part (up to 1024 bytes) over and over (`repetitive_input`)."""
    repetitive_bytes: int = 16384
    """How long such a prompt is at least."""
    scan_bytes: int = 262144
    """Of a body, how much is looked at for characters; a megabyte takes about a millisecond."""

    def __post_init__(self) -> None:
        if self.repetitive_bytes < 2 * LONGEST_PERIOD:
            raise ValueError(f"repetitive_bytes must be at least {2 * LONGEST_PERIOD}, got {self.repetitive_bytes}")
        if self.scan_bytes < 0:
            raise ValueError(f"scan_bytes must not be negative, got {self.scan_bytes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlength:
    """One model's answer to prompts that are too long for it."""

    action: OnOverlength = OnOverlength.REJECT
    long_to: str | None = None
    """The model with the longer context; only ``route_long`` has one."""

    def __post_init__(self) -> None:
        if (self.action is OnOverlength.ROUTE_LONG) is not (self.long_to is not None):
            raise ValueError("route_long names the model with the longer context (long_to), and nothing else does")


def has_invalid_utf8(data: bytes, most_bytes: int) -> bool:
    """Whether bytes that are no UTF-8 stand in the first ``most_bytes``."""
    looked_at = data[:most_bytes]
    if looked_at.isascii():
        return False
    try:
        looked_at.decode()
    except UnicodeDecodeError as error:
        # The last character may only have been cut in two by the bound.
        return len(looked_at) == len(data) or error.start < len(looked_at) - 3
    return False


def has_nul(data: bytes, most_bytes: int) -> bool:
    """Whether JSON text holds a NUL, which can only be written as an escape."""
    return _holds(_NUL, data, most_bytes)


def has_control(data: bytes, most_bytes: int) -> bool:
    """Whether JSON text holds a control character that is neither tab nor a line break."""
    return _holds(_CONTROL, data, most_bytes)


def breaks_json(data: bytes, most_bytes: int) -> bool:
    """Whether characters are the reason why this is no JSON: raw control characters, half a surrogate pair, no UTF-8.

    For what has been refused already; it only chooses the words.
    """
    looked_at = data[:most_bytes]
    return (
        len(looked_at.translate(None, _RAW_CONTROLS)) < len(looked_at)
        or _holds(_SURROGATE, data, most_bytes)
        or has_invalid_utf8(data, most_bytes)
    )


def _holds(escape: re.Pattern[bytes], data: bytes, most_bytes: int) -> bool:
    found = escape.search(data, 0, most_bytes)
    while found is not None:
        before, at = 0, found.start() - 1
        while at >= 0 and data[at] == 92:
            before, at = before + 1, at - 1
        # After an odd number of backslashes this one is text, and what follows it is no escape.
        if before % 2 == 0:
            return True
        found = escape.search(data, found.end(), most_bytes)
    return False


def period_of(text: bytes, least_bytes: int) -> int:
    """How long the part is that ``text`` says over and over, but for its ends; 0: it does not, or is shorter than
    ``least_bytes``."""
    size = len(text)
    if size < least_bytes:
        return 0
    middle = size // 2
    for needle in _NEEDLES:
        at = text.find(text[middle : middle + needle], middle + 1, middle + needle + LONGEST_PERIOD)
        if at < 0:
            return 0
        period, edge = at - middle, size // _EDGE_SHARE
        if text[edge : size - edge - period] == text[edge + period : size - edge]:
            return period
    return 0
