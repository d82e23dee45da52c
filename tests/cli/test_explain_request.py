"""The command asks a real admin API over a real socket."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import run
from tests.gateway.test_admin import Panel
from tests.lens.rows import row
from tidegate.gateway.admin import admin_app
from tidegate.gateway.admin_server import AdminServer
from tidegate.gateway.ports import open_port

TOKEN = "let-me-in"


class Admin:
    """An admin API in a thread of its own, which asks for a token where ``digests`` holds one."""

    def __init__(self, digests: tuple[str, ...] = ()) -> None:
        self.panel = Panel()
        self._app = admin_app(self.panel, digests)
        self._sock = open_port("127.0.0.1", 0, "--admin-port")
        self.port = int(self._sock.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()

    async def _serve(self) -> None:
        server = AdminServer(self._app, self._sock)
        server.start()
        await self._done.wait()
        await server.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def admin() -> Iterator[Admin]:
    server = Admin()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_ADMIN_TOKEN", raising=False)


def test_the_life_of_a_request_is_told_in_sentences(capsys: pytest.CaptureFixture[str], admin: Admin) -> None:
    admin.panel.ring.add([row(request_id="req-a/b")])
    ended = run(capsys, "explain", "request", "req-a/b", "--admin", admin.url)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("Request req-a/b (")
    assert "Time by phase: connect 10 ms, first token 490 ms, answer 2.5 s" in ended.out


def test_the_admin_api_is_found_through_the_configuration(
    capsys: pytest.CaptureFixture[str], admin: Admin, tmp_path: Path
) -> None:
    admin.panel.ring.add([row(request_id="r1")])
    (tmp_path / "tidegate.yaml").write_text(f"server: {{admin_port: {admin.port}}}")
    told = json.loads(run(capsys, "explain", "request", "r1", "--json").out)
    assert [each["request_id"] for each in told["requests"]] == ["r1"]
    assert told["requests"][0]["explanation"]


def test_a_request_that_is_not_known_is_told_so(capsys: pytest.CaptureFixture[str], admin: Admin) -> None:
    ended = run(capsys, "explain", "request", "nothing", "--admin", admin.url)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("tidegate: explain request: no request 'nothing' among the last 0")


def test_a_token_is_taken_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Admin((hashlib.sha256(TOKEN.encode()).hexdigest(),))
    try:
        server.panel.ring.add([row(request_id="r1")])
        refused = run(capsys, "explain", "request", "r1", "--admin", server.url)
        assert refused.status == 1
        assert refused.err.rstrip().endswith("(the environment variable TIDEGATE_ADMIN_TOKEN holds it)")
        monkeypatch.setenv("TIDEGATE_ADMIN_TOKEN", TOKEN)
        assert run(capsys, "explain", "request", "r1", "--admin", server.url).status == 0
    finally:
        server.close()


def test_without_an_id_it_says_what_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert "give the x-request-id of its response" in run(capsys, "explain", "request").err


def test_where_nothing_listens_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        ended = run(capsys, "explain", "request", "r1", "--admin", url)
    assert ended.err.startswith(f"tidegate: explain request: no admin API at {url} (")
    assert "is tidegate serve running?" in ended.err
    assert "no admin API at ftp://x" in run(capsys, "explain", "request", "r1", "--admin", "ftp://x").err


def test_an_answer_of_something_else_is_told_so(capsys: pytest.CaptureFixture[str], admin: Admin) -> None:
    ended = run(capsys, "explain", "request", "r1", "--admin", f"{admin.url}/metrics?")
    assert ended.err.endswith("/metrics? answered 200, and not as Tidegate's admin API does\n")


def test_a_faulty_configuration_asks_for_the_url(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text("mode: staging")
    ended = run(capsys, "explain", "request", "r1")
    assert ended.err.splitlines()[0].endswith("so name the admin API with --admin URL")
    assert "tidegate.yaml:1:7: mode" in ended.err
