from __future__ import annotations

import pytest

from tidegate.errors import ProtocolError
from tidegate.gateway.proxy_preamble import SIGNATURE, may_begin, read

IPV4 = SIGNATURE + b"\x21\x11\x00\x0c" + bytes([203, 0, 113, 7, 10, 0, 0, 1, 31, 144, 0, 80])
IPV6 = SIGNATURE + b"\x21\x21\x00\x24" + bytes.fromhex("20010db8" + "00" * 11 + "05") + bytes(20)
WITH_TLV = SIGNATURE + b"\x21\x11\x00\x10" + IPV4[16:] + b"\x03\x00\x01x"
LOCAL = SIGNATURE + b"\x20\x00\x00\x00"
UNIX = SIGNATURE + b"\x21\x31\x00\xd8" + bytes(216)


@pytest.mark.parametrize(
    ("preamble", "address"),
    [(IPV4, "203.0.113.7"), (IPV6, "2001:db8::5"), (WITH_TLV, "203.0.113.7"), (LOCAL, None), (UNIX, None)],
)
def test_the_address_and_the_length_are_read_once_all_of_it_is_here(preamble: bytes, address: str | None) -> None:
    for end in range(len(preamble)):
        assert may_begin(preamble[:end])
        assert read(preamble[:end]) is None
    assert read(preamble + b"GET /") == (address, len(preamble))


def test_what_does_not_begin_like_one_is_none() -> None:
    assert not may_begin(b"GET / HTTP/1.1\r\n")
    assert may_begin(b"")


def test_another_version_is_refused() -> None:
    with pytest.raises(ProtocolError, match="version"):
        read(SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12))
