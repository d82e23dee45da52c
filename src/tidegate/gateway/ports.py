"""Listening ports, and who holds one that is taken."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

from tidegate.errors import TidegateError

PROC = Path("/proc")
BACKLOG = 1024
LISTENING = "0A"
"""``TCP_LISTEN`` in the fourth column of /proc/net/tcp."""


class PortTakenError(TidegateError):
    """A port cannot be opened; the text names its holder, where the system tells, and the way out."""


def open_port(host: str, port: int, flag: str) -> socket.socket:
    """A non-blocking listening socket on ``host``; ``port`` 0 takes any free one.

    ``flag`` is the option that chooses another port, for the message. Raises ``PortTakenError``.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise PortTakenError(f"cannot listen on {host}: {error.strerror}; give an address of this machine") from None
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise PortTakenError(why_not(error, host, port, flag)) from None
    sock.setblocking(False)
    return sock


def why_not(error: OSError, host: str, port: int, flag: str) -> str:
    """What kept a port from being opened, and what to do."""
    if error.errno == errno.EADDRINUSE:
        holder = holder_of(port)
        by = f"taken by {holder}" if holder else "taken by another process"
        return f"port {port} on {host} is {by}; stop it, or choose another port with {flag}"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} needs more rights; choose one above 1023 with {flag}"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def holder_of(port: int, proc: Path = PROC) -> str | None:
    """``name (pid N)`` of the process that listens on ``port``; None where the system does not tell."""
    inodes = set(_listening_inodes(port, proc))
    if not inodes:
        return None
    for folder in proc.glob("[0-9]*"):
        if inodes & set(_socket_inodes(folder)):
            return f"{_name_of(folder)} (pid {folder.name})"
    return None


def _listening_inodes(port: int, proc: Path) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                yield columns[9]


def _socket_inodes(folder: Path) -> Iterator[str]:
    """Of every socket of one process; none when it is another user's."""
    try:
        descriptors = list((folder / "fd").iterdir())
    except OSError:
        return
    for descriptor in descriptors:
        target = _target_of(descriptor)
        if target.startswith("socket:["):
            yield target[len("socket:[") : -1]


def _target_of(descriptor: Path) -> str:
    """What a descriptor refers to; "" when it was closed meanwhile."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def _name_of(folder: Path) -> str:
    try:
        return (folder / "comm").read_text().strip()
    except OSError:
        return "a process"
