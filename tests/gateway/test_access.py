from __future__ import annotations

from hashlib import sha256

import pytest

from tidegate.gateway.access import Access
from tidegate.gateway.settings import ApiKey


def key(secret: bytes, tenant: str) -> ApiKey:
    return ApiKey(sha256=sha256(secret).hexdigest(), tenant=tenant)


def test_without_keys_everybody_is_the_default_tenant() -> None:
    assert Access((), ()).tenant({}) == "default"


@pytest.mark.parametrize(
    ("header", "tenant"),
    [
        (b"Bearer red", "a"),
        (b"bearer  red ", "a"),
        (b"Bearer blue", "b"),
        (b"Bearer green", None),
        (b"Bearer ", None),
        (b"red", None),
        (b"Basic red", None),
        (b"", None),
    ],
)
def test_only_a_configured_key_opens(header: bytes, tenant: str | None) -> None:
    access = Access([key(b"red", "a"), key(b"blue", "b")], ())
    assert access.tenant({b"authorization": header} if header else {}) == tenant


@pytest.mark.parametrize(
    ("peer", "forwarded", "source"),
    [
        ("10.0.0.1", b"198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", b"6.6.6.6, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("10.0.0.1", b"[2001:db8::1]:443", "2001:db8::1"),
        ("10.0.0.1", b"198.51.100.1:5555", "198.51.100.1"),
        ("10.0.0.1", b"", "10.0.0.1"),
        ("10.0.0.1", b"10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", b"unknown", "unknown"),
        ("192.0.2.1", b"198.51.100.1", "192.0.2.1"),
        ("fd00::5", b"198.51.100.1", "198.51.100.1"),
        ("", b"198.51.100.1", ""),
    ],
)
def test_a_client_behind_our_own_proxies_is_the_last_stranger(peer: str, forwarded: bytes, source: str) -> None:
    access = Access((), ("10.0.0.0/8", "fd00::/8"))
    assert access.source(peer, {b"x-forwarded-for": forwarded} if forwarded else {}) == source


def test_without_trusted_proxies_nobody_is_believed() -> None:
    access = Access((), ())
    assert not access.trusts("127.0.0.1")
    assert access.source("127.0.0.1", {b"x-forwarded-for": b"1.1.1.1"}) == "127.0.0.1"


@pytest.mark.parametrize("wrong", [{"keys": [ApiKey(sha256="zz", tenant="t")]}, {"keys": [], "proxies": ["nowhere"]}])
def test_a_digest_or_network_that_is_none_is_an_error(wrong: dict[str, list[object]]) -> None:
    with pytest.raises(ValueError, match=r"hexadecimal|nowhere"):
        Access(wrong["keys"], wrong.get("proxies", []))  # type: ignore[arg-type]  # wrong on purpose
