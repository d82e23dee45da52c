"""The PROXY protocol, version 2: a load balancer says whose connection it forwards.

https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, section 2.2. Read only from trusted
peers, since anybody can write it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from tidegate.errors import ProtocolError

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
HEAD_BYTES = 16
_PROXY = 0x21
_LOCAL = 0x20
_IPV4 = 0x1
_IPV6 = 0x2


def may_begin(data: bytes) -> bool:
    """``data`` is the signature or the start of it."""
    return data[: len(SIGNATURE)] == SIGNATURE[: len(data)]


def read(data: bytes) -> tuple[str | None, int] | None:
    """The client's address and how many bytes the preamble has; None: not all of it is here.

    The address is None for a connection of the proxy's own (health checks) and for other families.

    Raises:
        ProtocolError: a signature with something else behind it.
    """
    if len(data) < HEAD_BYTES:
        return None
    command, family = data[12], data[13] >> 4
    if command not in (_PROXY, _LOCAL):
        raise ProtocolError("a PROXY preamble of another version than 2")
    end = HEAD_BYTES + int.from_bytes(data[14:16])
    if len(data) < end:
        return None
    if command == _PROXY and family == _IPV4 and end >= HEAD_BYTES + 12:
        return str(IPv4Address(data[16:20])), end
    if command == _PROXY and family == _IPV6 and end >= HEAD_BYTES + 36:
        return str(IPv6Address(data[16:32])), end
    return None, end
