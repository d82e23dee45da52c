from __future__ import annotations

import socket

import pytest

from tidegate.engines import loopback
from tidegate.errors import EngineError


def test_a_free_port_can_be_listened_on_and_is_none_of_an_outgoing_connection() -> None:
    port = loopback.free_port()
    assert port < 32_768
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_taken_port_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(loopback, "PORTS", range(port, port + 1))
        with pytest.raises(EngineError, match="no free port"):
            loopback.free_port()
