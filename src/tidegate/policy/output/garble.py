"""Finds text that no one can read (SPEC S1-77: the service must not emit garbled text).

garbled when, in the last 1024 characters, bad ≥ max(3, garbled_share × length). Bad is

* U+FFFD, which stands where bytes were no UTF-8 (half of a character that two tokens share is normal, once);
* a control character other than tab and line breaks, a surrogate without its other half, a non-character;
* mojibake: UTF-8 read as Latin-1 or Windows-1252 (Ã and Â before U+0080 to U+00BF, â€, ï¿½).

Why a share of a window and not a count: a few such characters are part of much good text (an answer about
encodings, a terminal's colours), and a long answer must not hide a broken end. A broken model that writes
good characters in a senseless order is no business of this one; where it writes one of them for ever,
``repetition`` finds it.
"""

from __future__ import annotations

import re

_BLOCKS = 2
_LEAST = 3

_CONTROL = bytes(code for code in range(128) if (code < 32 and code not in (9, 10, 13)) or code == 127)
# mypyc takes no lone surrogates in a literal.
_SURROGATES = chr(0xD800) + "-" + chr(0xDFFF)
_BAD = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd\ufffe\uffff"
    + _SURROGATES
    + "]|[\u00c2\u00c3][\x80-\xbf]|\u00e2\u20ac|\u00ef\u00bf\u00bd"
)


class Garble:
    """Of one text; fed in blocks."""

    __slots__ = ("_counts", "_share", "bad", "looked_at")

    def __init__(self, share: float) -> None:
        self._share = share
        self._counts: list[tuple[int, int]] = []
        """(bad, characters) of the last blocks."""
        self.bad = 0
        self.looked_at = 0
        """Characters in which ``bad`` were found, at the last check."""

    def check(self, block: str) -> bool:
        """Take the next ``block`` (512 characters; fewer only at the end); whether it is garbled by now."""
        counts = self._counts
        counts.append((bad_characters(block), len(block)))
        if len(counts) > _BLOCKS:
            del counts[0]
        bad = looked_at = 0
        for each, characters in counts:
            bad += each
            looked_at += characters
        self.bad, self.looked_at = bad, looked_at
        return bad >= _LEAST and bad >= self._share * looked_at

    @property
    def evidence(self) -> str:
        """The finding in words."""
        return f"{self.bad} of {self.looked_at} characters are no text"


def bad_characters(text: str) -> int:
    """How many characters, or pairs of them, nobody meant to write."""
    if text.isascii():
        data = text.encode()
        return len(data) - len(data.translate(None, _CONTROL))
    return len(_BAD.findall(text))
