"""Whether text that comes piece by piece can still become valid JSON (RFC 8259), and whether it is complete.

A push-down automaton: one state and a stack of open brackets, one step for each character. Whole keys, scalars and
runs of them are skipped by regular expressions, which take nothing but what the automaton would; they give up at
the end of a piece. No more is kept than the state, so memory does not grow with the text, and where the pieces
are cut makes no difference.

Stricter than some readers, as strict as the RFC: no NaN, no comments, no comma before a closing bracket, no
raw control characters in strings. Brackets may stand 500 deep: common readers give up at 1000.
"""

from __future__ import annotations

import re

DEEPEST = 500

# States. Those from _ZERO on are numbers; a name beside them says what may come next.
_VALUE, _FIRST_VALUE, _FIRST_KEY, _KEY, _COLON, _AFTER, _STRING, _ESCAPE, _HEX, _WORD, _END, _BROKEN = range(12)
_MINUS, _ZERO, _WHOLE, _POINT, _FRACTION, _EXPONENT, _SIGN, _POWER = range(12, 20)

# Possessive throughout: what was matched is never looked at again, so each character is looked at once.
_WS = r"[ \t\n\r]*+"
_TEXT = r'"(?>[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"'
_NUMBER = r"-?(?>0|[1-9][0-9]*+)(?>\.[0-9]++)?+(?>[eE][+-]?[0-9]++)?+(?=[ \t\n\r,\]}])"
_SCALAR = rf"(?>{_TEXT}|{_NUMBER}|true|false|null)"

_ONE_KEY = re.compile(rf"{_WS}{_TEXT}{_WS}:")
_ONE_SCALAR = re.compile(rf"{_WS}{_SCALAR}")
_ITEM = rf"{_WS}{_SCALAR}{_WS}"
_PAIR = rf"{_WS}{_TEXT}{_WS}:{_ITEM}"
_PAIRS = re.compile(rf"(?>{_PAIR},)*+(?>{_PAIR}(?=\}}))?+")
_ITEMS = re.compile(rf"(?>{_ITEM},)*+(?>{_ITEM}(?=\]))?+")
_BLANKS = " \t\n\r"
_BLANK = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = '"\\/bfnrt'
_HEX_DIGITS = "0123456789abcdefABCDEF"
_DIGITS = "0123456789"
_WORDS = {"t": "rue", "f": "alse", "n": "ull"}
_COMPLETE_NUMBER = (_ZERO, _WHOLE, _FRACTION, _POWER)


class JsonProgress:
    """Of one text."""

    __slots__ = ("_hex", "_is_key", "_open", "_rest", "_state", "why")

    def __init__(self) -> None:
        self._state = _VALUE
        self._open: list[str] = []
        """Brackets that are not closed yet."""
        self._is_key = False
        self._hex = 0
        """Digits of a ``\\u`` escape still to come."""
        self._rest = ""
        """Letters of ``true``, ``false`` or ``null`` still to come."""
        self.why = ""
        """Why this is no JSON; "" while it may be."""

    @property
    def is_broken(self) -> bool:
        """Nothing that follows can make it JSON."""
        return self._state == _BROKEN

    @property
    def is_complete(self) -> bool:
        """It is one whole value."""
        return self._state == _END or (not self._open and self._state in _COMPLETE_NUMBER)

    @property
    def is_blank(self) -> bool:
        """No value has begun."""
        return self._state == _VALUE and not self._open

    def feed(self, text: str) -> None:
        """Take the next piece."""
        at, size = 0, len(text)
        while at < size:
            state = self._state
            if state == _STRING:
                at = self._skip_string(text, at)
            elif state == _BROKEN:
                return
            elif state >= _MINUS:
                at += self._number(state, text[at])
            elif _ESCAPE <= state <= _WORD:
                self._within(state, text[at])
                at += 1
            else:
                at = self._step(state, text, at)

    def _step(self, state: int, text: str, at: int) -> int:
        """Where the next token, or run of tokens, outside of strings, words and numbers ends."""
        if text[at] in _BLANKS:
            blank = _BLANK.match(text, at)
            at = at if blank is None else blank.end()
            if at == len(text):
                return at
        character = text[at]
        if state <= _KEY and character not in "{}[]":
            skipped = self._skip(state, text, at)
            if skipped:
                return skipped
        self._between(state, character)
        return at + 1

    def _skip(self, state: int, text: str, at: int) -> int:
        """Where a run of members or items that begins at ``at`` ends; 0: no complete one begins there."""
        is_key = state in (_KEY, _FIRST_KEY)
        if is_key or (self._open and self._open[-1] == "["):
            run = (_PAIRS if is_key else _ITEMS).match(text, at)
            if run is not None and run.end() > at:
                # Neither a scalar nor white space ends with a comma.
                self._state = _AFTER if text[run.end() - 1] != "," else _KEY if is_key else _VALUE
                return run.end()
        found = (_ONE_KEY if is_key else _ONE_SCALAR).match(text, at)
        if found is None:
            return 0
        self._state = _VALUE if is_key else self._after_value()
        return found.end()

    def _skip_string(self, text: str, at: int) -> int:
        found = _PLAIN.match(text, at)
        at = at if found is None else found.end()
        if at == len(text):
            return at
        character = text[at]
        if character == '"':
            self._state = _COLON if self._is_key else self._after_value()
        elif character == "\\":
            self._state = _ESCAPE
        else:
            self._fail("a raw control character stands in a string")
        return at + 1

    def _within(self, state: int, character: str) -> None:
        """A character of an escape or of a word."""
        if state == _ESCAPE:
            if character == "u":
                self._state, self._hex = _HEX, 4
            elif character in _ESCAPES:
                self._state = _STRING
            else:
                self._fail("a string has an escape that JSON does not know")
        elif state == _HEX:
            self._hex -= 1
            if character not in _HEX_DIGITS:
                self._fail("a \\u escape has no four hexadecimal digits")
            elif not self._hex:
                self._state = _STRING
        elif character != self._rest[0]:
            self._fail("a bare word stands where a value should")
        else:
            self._rest = self._rest[1:]
            if not self._rest:
                self._state = self._after_value()

    def _between(self, state: int, character: str) -> None:
        """A character outside strings, numbers and words."""
        if state == _AFTER:
            self._after(character)
        elif state == _COLON:
            if character == ":":
                self._state = _VALUE
            else:
                self._fail("no colon stands behind a key")
        elif state == _END:
            self._fail("more text stands behind the value")
        elif state in (_KEY, _FIRST_KEY):
            if character == '"':
                self._state, self._is_key = _STRING, True
            elif character == "}" and state == _FIRST_KEY:
                self._close()
            else:
                self._fail("no key in quotes stands where one should")
        elif character == "]" and state == _FIRST_VALUE:
            self._close()
        else:
            self._value(character)

    def _value(self, character: str) -> None:
        if character == '"':
            self._state, self._is_key = _STRING, False
        elif character in "{[":
            self._open.append(character)
            self._state = _FIRST_KEY if character == "{" else _FIRST_VALUE
            if len(self._open) > DEEPEST:
                self._fail(f"brackets stand more than {DEEPEST} deep")
        elif character in _WORDS:
            self._state, self._rest = _WORD, _WORDS[character]
        elif character == "-":
            self._state = _MINUS
        elif character in _DIGITS:
            self._state = _ZERO if character == "0" else _WHOLE
        else:
            self._fail("no value stands where one should")

    def _after(self, character: str) -> None:
        opened = self._open[-1]
        if character == ",":
            self._state = _KEY if opened == "{" else _VALUE
        elif character == ("}" if opened == "{" else "]"):
            self._close()
        else:
            self._fail("neither a comma nor the closing bracket stands behind a value")

    def _number(self, state: int, character: str) -> int:
        """A step of a number; 0 when ``character`` is no part of it and is still to be read."""
        if character in _DIGITS:
            self._state = _after_digit(state, character)
        elif character == "." and state in (_ZERO, _WHOLE):
            self._state = _POINT
        elif character in "eE" and state in (_ZERO, _WHOLE, _FRACTION):
            self._state = _EXPONENT
        elif character in "+-" and state == _EXPONENT:
            self._state = _SIGN
        elif state in _COMPLETE_NUMBER:
            self._state = self._after_value()
            return 0
        else:
            self._state = _BROKEN
        if self._state == _BROKEN:
            self._fail("a number is not written as JSON writes them")
        return 1

    def _after_value(self) -> int:
        return _AFTER if self._open else _END

    def _close(self) -> None:
        self._open.pop()
        self._state = self._after_value()

    def _fail(self, why: str) -> None:
        self._state, self.why = _BROKEN, why


def _after_digit(state: int, digit: str) -> int:
    if state == _MINUS:
        return _ZERO if digit == "0" else _WHOLE
    if state == _ZERO:
        return _BROKEN
    if state == _POINT:
        return _FRACTION
    return _POWER if state in (_EXPONENT, _SIGN) else state
