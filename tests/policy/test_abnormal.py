"""Input that no engine should be given is told from input that only looks like it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.abnormal import (
    LONGEST_PERIOD,
    Handling,
    InputConfig,
    OnOverlength,
    Overlength,
    breaks_json,
    has_control,
    has_invalid_utf8,
    has_nul,
    period_of,
)

MOST = 1 << 20


@pytest.mark.parametrize(
    ("data", "most", "invalid"),
    [
        (b"plain", MOST, False),
        ("漢字 é 😀".encode(), MOST, False),
        (b"caf\xe9", MOST, True),
        (b"\xff" + b"x" * 100, MOST, True),
        (b"x" * 100 + b"\xff", 50, False),
        ("😀".encode() * 10, 6, False),
        (b"\xf0" + "😀".encode() * 10, 20, True),
        ("é".encode()[:1], MOST, True),
    ],
)
def test_bytes_that_are_no_utf8_are_found_as_far_as_is_looked(data: bytes, most: int, invalid: bool) -> None:
    assert has_invalid_utf8(data, most) is invalid


@pytest.mark.parametrize(
    ("text", "nul", "control"),
    [
        (rb'{"a":"b"}', False, False),
        (rb'{"a":"\u0000"}', True, False),
        (rb'{"a":"\\u0000"}', False, False),
        (rb'{"a":"\\\u0000"}', True, False),
        (rb'{"a":"\\u0000 \u0000"}', True, False),
        (rb'{"a":"\u001b[31m"}', False, True),
        (rb'{"a":"\t\n\r \u00e9 \u0009 \u000A"}', False, False),
        (rb'{"a":"\f"}', False, True),
        (rb'{"a":"\\b"}', False, False),
        (rb'{"a":"\u007f"}', False, True),
    ],
)
def test_escapes_of_control_characters_are_found_and_escaped_backslashes_are_none(
    text: bytes, nul: bool, control: bool
) -> None:
    assert has_nul(text, MOST) is nul
    assert has_control(text, MOST) is control
    assert not has_nul(text, 3)


@given(st.text())
def test_nul_is_found_in_json_exactly_where_it_is(text: str) -> None:
    assert has_nul(json.dumps(text).encode(), MOST) is ("\0" in text)


@pytest.mark.parametrize(
    ("data", "is_why"),
    [
        (b'{"a":"x\x00"}', True),
        (b'{"a":"x\x1b"}', True),
        (rb'{"a":"\ud800"}', True),
        (b'{"a":"\xff"}', True),
        (b'{"a": x}', False),
        (b'{\n\t"a": 1,\r\n}', False),
    ],
)
def test_broken_json_is_blamed_on_a_character_only_if_there_is_one(data: bytes, is_why: bool) -> None:
    assert breaks_json(data, MOST) is is_why


@pytest.mark.parametrize(
    ("text", "period"),
    [
        (b"repeat after me. " * 2000, 17),
        (b'[{"role":"user","content":"' + b"na " * 9000 + b'. And now?"}]', 3),
        (b"x" * 20_000, 1),
        (bytes(range(32, 127)) * 10 * 30, 95),
        ((b"-" * 100 + b" end\n") * 300, 105),
        (b"".join(b"line %d of many\n" % n for n in range(2000)), 0),
        (b"x" * 16_383, 0),
        (b"y" + bytes(range(1, 250)) * 5 + b"x" * 30_000 + bytes(range(1, 250)) * 60, 0),
        ((b"-" * 100 + b"%d") * 300 % tuple(range(300)), 0),
    ],
)
def test_a_prompt_of_one_short_part_is_found(text: bytes, period: int) -> None:
    assert period_of(text, 16_384) == period


def test_parts_longer_than_the_longest_period_are_none() -> None:
    part = b"".join(b"%d " % n for n in range(LONGEST_PERIOD // 2))
    assert len(part) > LONGEST_PERIOD
    assert period_of(part * 30, 16_384) == 0


@pytest.mark.parametrize(
    ("make", "changes", "why"),
    [
        (InputConfig, {"repetitive_bytes": 10}, "repetitive_bytes"),
        (InputConfig, {"scan_bytes": -1}, "scan_bytes"),
        (Overlength, {"action": OnOverlength.ROUTE_LONG}, "long_to"),
        (Overlength, {"long_to": "x"}, "long_to"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make(**changes)


def test_defaults_refuse_what_breaks_engines_and_pass_the_rest() -> None:
    config = InputConfig()
    assert (config.empty, config.invalid_chars) == (Handling.REJECT, Handling.REJECT)
    assert (config.control_chars, config.repetitive) == (Handling.PASS, Handling.MARK)
    assert Overlength().action is OnOverlength.REJECT
    assert Overlength(action=OnOverlength.ROUTE_LONG, long_to="x").long_to == "x"
