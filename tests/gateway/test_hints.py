from __future__ import annotations

import pytest

from tidegate.gateway.hints import LONGEST_WAIT_S, Hints, hints


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
