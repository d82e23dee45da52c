"""A port that is taken is reported with its holder and the way out."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from tidegate.gateway.ports import PortTakenError, holder_of, open_port, why_not


def test_port_zero_takes_a_free_one_and_listens() -> None:
    with open_port("127.0.0.1", 0, "--port") as sock:
        host, port = sock.getsockname()
        assert host == "127.0.0.1"
        with socket.create_connection((host, port), timeout=5) as client:
            assert client.getpeername() == (host, port)
        assert not sock.getblocking()


def test_a_taken_port_names_its_holder_and_the_flag() -> None:
    with open_port("127.0.0.1", 0, "--port") as first:
        port = first.getsockname()[1]
        with pytest.raises(PortTakenError) as caught:
            open_port("127.0.0.1", port, "--admin-port")
    text = str(caught.value)
    assert f"port {port} on 127.0.0.1 is taken by " in text
    assert f"(pid {os.getpid()})" in text
    assert "--admin-port" in text


def test_the_holder_of_a_free_port_is_nobody() -> None:
    with open_port("127.0.0.1", 0, "--port") as sock:
        port = sock.getsockname()[1]
    assert holder_of(port) is None


def test_where_the_system_tells_nothing_the_message_still_helps(tmp_path: Path) -> None:
    assert holder_of(80, tmp_path) is None
    assert "needs more rights" in why_not(OSError(errno.EACCES, "denied"), "127.0.0.1", 80, "--port")
    assert "no such thing" in why_not(OSError(errno.EINVAL, "no such thing"), "127.0.0.1", 80, "--port")


def test_a_host_that_does_not_exist_is_said_so() -> None:
    with pytest.raises(PortTakenError, match=r"cannot listen on 256\.1\.1\.1"):
        open_port("256.1.1.1", 0, "--host")
