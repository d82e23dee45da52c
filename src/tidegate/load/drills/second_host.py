"""A second host for this process alone, behind a link whose packets can be delayed and lost.

The host is a network namespace, the link a pair of TUN devices with a ``PacketLink`` between them: TCP on both sides
is the kernel's, and so are its retransmissions. That is what ``tc netem`` does in kernels that have it; here it needs
no tool and no module but ``tun``, and nothing of it outlives the process: devices, addresses and namespace go with it,
also after a kill -9. Linux, and CAP_NET_ADMIN.

Source of the addresses: RFC 2544, 198.18.0.0/15 is for measurements between two devices.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

TUN = "/dev/net/tun"
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
SIOCSIFADDR, SIOCSIFNETMASK, SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8916, 0x891C, 0x8913, 0x8914
IFF_UP = 0x1
CLONE_NEWNET = 0x40000000
NAME = b"tgdrill%d"
MOST_LINKS = 16384
"""Networks of four addresses in 198.18.0.0/16."""


@dataclass(frozen=True, slots=True)
class Device:
    """One TUN device, up."""

    descriptor: int
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class SecondHost:
    """Both ends of the link, and a socket on the far one that waits to be listened on."""

    near: Device
    far: Device
    listening: socket.socket


def second_host() -> SecondHost:
    """Raises OSError where it may not be made."""
    near = near_device()
    try:
        far, listening = _in_a_namespace(near)
    except OSError:
        os.close(near.descriptor)
        raise
    return SecondHost(near, far, listening)


def near_device() -> Device:
    """On this host, with the first free number and the first address of that number's network."""
    descriptor, name = _make_tun(NAME)
    number = int(name.removeprefix("tgdrill"))
    return _raised(descriptor, name, address_of(number, 1))


def address_of(number: int, host: int) -> str:
    """Host 1 or 2 of link ``number``."""
    third, fourth = divmod(number % MOST_LINKS * 4 + host, 256)
    return f"198.18.{third}.{fourth}"


def _in_a_namespace(near: Device) -> tuple[Device, socket.socket]:
    """The far host. ``unshare`` moves the calling thread alone, and what it makes stays where it was made."""
    far_address = address_of(int(near.name.removeprefix("tgdrill")), 2)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_make_far, far_address).result()


def _make_far(address: str) -> tuple[Device, socket.socket]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace may be made")
    device = _raised(*_make_tun(NAME), address)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind((address, 0))
    return device, listening


def _make_tun(name: bytes) -> tuple[int, str]:
    descriptor = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    try:
        made = fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name, IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, made[:16].rstrip(b"\0").decode()


def _raised(descriptor: int, name: str, address: str) -> Device:
    """With its address and a network of four, and up."""
    named = name.encode()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            _ask(asking, SIOCSIFADDR, named, address)
            _ask(asking, SIOCSIFNETMASK, named, "255.255.255.252")
            got = fcntl.ioctl(asking, SIOCGIFFLAGS, struct.pack("16sH22x", named, 0))
            flags = struct.unpack("16xH22x", got)[0]
            fcntl.ioctl(asking, SIOCSIFFLAGS, struct.pack("16sH22x", named, flags | IFF_UP))
    except OSError:
        os.close(descriptor)
        raise
    return Device(descriptor, name, address)


def _ask(asking: socket.socket, request: int, name: bytes, address: str) -> None:
    """``struct ifreq`` with a ``sockaddr_in``."""
    where = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
    fcntl.ioctl(asking, request, struct.pack("16s16s8x", name, where))
