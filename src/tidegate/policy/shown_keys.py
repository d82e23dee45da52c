"""How a marked key is shown in logs and metrics: as it is, as the network it lies in, or as a digest.

A digest is the beginning of SHA-256 without a secret: equal keys stay comparable over processes and restarts, and
whoever can try all keys, such as all IPv4 addresses, can undo it. Names from the configuration (tenant, model,
replica) are always shown. The admin API has the keys themselves: without them nobody could lift a mark.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_address, ip_network

DIGITS = 12
IPV4_PREFIX, IPV6_PREFIX = 24, 48


class ShowSource(StrEnum):
    IP = "ip"
    PREFIX = "prefix"
    HASH = "hash"


def digest(key: str) -> str:
    return sha256(key.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def shown_source(address: str, how: ShowSource) -> str:
    """An address as configured; what is no address (a socket's path) has no prefix, and is shown as a digest then."""
    if how is ShowSource.IP:
        return address
    if how is ShowSource.HASH:
        return digest(address)
    try:
        parsed = ip_address(address)
    except ValueError:
        return digest(address)
    return str(ip_network((address, IPV4_PREFIX if parsed.version == 4 else IPV6_PREFIX), strict=False))
