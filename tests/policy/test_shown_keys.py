"""What logs and metrics show of an address."""

from __future__ import annotations

import pytest

from tidegate.policy.shown_keys import ShowSource, digest, shown_source


@pytest.mark.parametrize(
    ("address", "how", "shown"),
    [
        ("192.168.1.100", ShowSource.IP, "192.168.1.100"),
        ("192.168.1.100", ShowSource.PREFIX, "192.168.1.0/24"),
        ("2001:db8:1:2::5", ShowSource.PREFIX, "2001:db8:1::/48"),
        ("unix:/run/x", ShowSource.PREFIX, digest("unix:/run/x")),
        ("192.168.1.100", ShowSource.HASH, digest("192.168.1.100")),
    ],
)
def test_an_address_is_shown_as_configured(address: str, how: ShowSource, shown: str) -> None:
    assert shown_source(address, how) == shown


def test_a_digest_is_short_stable_and_says_nothing_by_itself() -> None:
    assert digest("alice") == digest("alice") != digest("bob")
    assert len(digest("alice")) == 12
    assert "alice" not in digest("alice")
    assert digest("\ud800")  # an unpaired surrogate can come out of a JSON body
