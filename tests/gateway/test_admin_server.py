"""The admin port answers over a real socket, and is free again after close."""

from __future__ import annotations

import asyncio
import signal

from tests.gateway.test_admin import Panel
from tidegate.gateway.admin import admin_app
from tidegate.gateway.admin_server import AdminServer
from tidegate.gateway.ports import open_port
from tidegate.wire.fetch import fetch


def test_it_answers_leaves_signals_alone_and_frees_its_port() -> None:
    async def run() -> None:
        before = signal.getsignal(signal.SIGINT)
        server = AdminServer(admin_app(Panel()), open_port("127.0.0.1", 0, "--admin-port"))
        server.start()
        port = server.port
        reply = await fetch(f"http://127.0.0.1:{port}/health", timeout_s=5)
        assert (reply.status, reply.body) == (200, b'{"status":"ok"}\n')
        assert signal.getsignal(signal.SIGINT) is before
        await server.close()
        open_port("127.0.0.1", port, "--admin-port").close()

    asyncio.run(run())
