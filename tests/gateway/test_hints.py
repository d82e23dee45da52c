from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.hints import LONGEST_WAIT_S, Hints, deadline_lines, hints


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, Hints()),
        ({b"x-tidegate-deadline-ms": b"1500"}, Hints(deadline_s=1.5)),
        ({b"grpc-timeout": b"200m"}, Hints(deadline_s=0.2)),
        ({b"grpc-timeout": b"2H"}, Hints(deadline_s=7200.0)),
        ({b"grpc-timeout": b"5S", b"x-tidegate-deadline-ms": b"9000"}, Hints(deadline_s=5.0)),
        ({b"x-tidegate-deadline-ms": b"1e300"}, Hints(deadline_s=LONGEST_WAIT_S)),
        ({b"x-stainless-read-timeout": b"600"}, Hints(first_byte_s=600.0)),
        ({b"x-stainless-read-timeout": b"not given"}, Hints()),
        ({b"x-stainless-read-timeout": b"0"}, Hints()),
        ({b"x-tidegate-class": b" batch ", b"x-tidegate-session": b"s"}, Hints(service_class="batch", session="s")),
        ({b"x-tidegate-session": b"s" * 200}, Hints(session="s" * 128)),
        ({b"x-tidegate-session": b""}, Hints()),
    ],
)
def test_headers_say_how_long_the_client_waits(fields: dict[bytes, bytes], found: Hints) -> None:
    assert hints(fields) == found


@pytest.mark.parametrize(
    "fields",
    [
        *[{b"x-tidegate-deadline-ms": value} for value in (b"", b"soon", b"-1", b"0", b"nan", b"inf")],
        *[{b"grpc-timeout": value} for value in (b"5", b"5s", b"123456789S", b"-5S")],
    ],
)
def test_a_deadline_that_is_none_is_the_clients_mistake(fields: dict[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match=r"x-tidegate-deadline-ms|grpc-timeout"):
        hints(fields)


@pytest.mark.parametrize(
    ("left_s", "fields", "lines"),
    [
        (1.5, {}, b"x-tidegate-deadline-ms: 1500\r\n"),
        (0.0129, {}, b"x-tidegate-deadline-ms: 12\r\n"),
        (-0.5, {}, b"x-tidegate-deadline-ms: 1\r\n"),
        (2.0, {b"grpc-timeout": b"3S"}, b"x-tidegate-deadline-ms: 2000\r\ngrpc-timeout: 2000m\r\n"),
        (
            LONGEST_WAIT_S,
            {b"grpc-timeout": b"200H"},
            b"x-tidegate-deadline-ms: 604800000\r\ngrpc-timeout: 604800S\r\n",
        ),
    ],
)
def test_what_is_left_goes_on_rounded_down(left_s: float, fields: dict[bytes, bytes], lines: bytes) -> None:
    assert deadline_lines(left_s, fields) == lines


@given(st.floats(0.001, LONGEST_WAIT_S))
def test_a_second_gateway_reads_no_more_than_what_the_first_had_left(left_s: float) -> None:
    told = dict(line.split(b": ") for line in deadline_lines(left_s, {b"grpc-timeout": b"1H"}).splitlines())
    found = hints(told)
    assert found.deadline_s is not None
    assert found.deadline_s <= left_s * (1 + 1e-12)
