"""Who is calling: the tenant behind a key, the address behind proxies."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from tidegate.gateway.settings import ApiKey
from tidegate.wire import header_names as names

DEFAULT_TENANT = "default"
_BEARER = b"bearer "


class Access:
    """Rebuilt when the settings change; keeps no state of its own."""

    def __init__(self, keys: Iterable[ApiKey], trusted_proxies: Iterable[str]) -> None:
        """Raises ``ValueError`` for a digest or a network that is none."""
        self._tenants = {bytes.fromhex(key.sha256): key.tenant for key in keys}
        self._trusted = [ip_network(network, strict=False) for network in trusted_proxies]
        self.is_open = not self._tenants
        """Nobody needs a key."""
        self.has_proxies = bool(self._trusted)

    def tenant(self, fields: dict[bytes, bytes]) -> str | None:
        """The tenant that the request's key belongs to; None: no valid key, answer 401."""
        if not self._tenants:
            return DEFAULT_TENANT
        given = fields.get(names.AUTHORIZATION, b"")
        if given[: len(_BEARER)].lower() != _BEARER:
            return None
        digest = hashlib.sha256(given[len(_BEARER) :].strip()).digest()
        # The digest of a guess tells nothing about the key, and is compared in constant time all the same.
        return next((tenant for known, tenant in self._tenants.items() if hmac.compare_digest(known, digest)), None)

    def trusts(self, address: str) -> bool:
        """What this peer says about its clients is believed."""
        return bool(self._trusted) and _is_within(address, self._trusted)

    def source(self, peer: str, fields: dict[bytes, bytes]) -> str:
        """The client's address: the last one in X-Forwarded-For that no proxy of ours wrote of itself."""
        if not self._trusted or not self.trusts(peer):
            return peer
        for hop in reversed(fields.get(names.X_FORWARDED_FOR, b"").decode("latin-1").split(",")):
            address = _bare(hop.strip())
            if not address:
                break
            peer = address
            if not self.trusts(address):
                break
        return peer


def _is_within(address: str, networks: list[IPv4Network | IPv6Network]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def _bare(hop: str) -> str:
    """Without port and brackets; some proxies add them."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
