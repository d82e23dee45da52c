"""The command asks a real admin API over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import run
from tests.cli.test_explain_request import Admin
from tidegate.gateway.admin_answers import Reloaded


@pytest.fixture
def admin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Admin]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_ADMIN_TOKEN", raising=False)
    server = Admin()
    yield server
    server.close()


def test_values_are_sent_typed_and_the_differences_are_told(capsys: pytest.CaptureFixture[str], admin: Admin) -> None:
    ended = run(capsys, "tune", "retries.ratio=0.2", "tail.enabled=false", "mode=null", "--admin", admin.url)
    assert (ended.status, ended.out, ended.err) == (0, "replica chat-1 added\n", "")
    admin.panel.reloaded = Reloaded()
    assert run(capsys, "tune", "upstreams.chat.replicas[0].sequences=3", "--dry-run", "--admin", admin.url).out == (
        "nothing differs\n"
    )
    assert run(capsys, "tune", "--reset", "--admin", admin.url).status == 0
    assert admin.panel.patches == [
        ({"retries.ratio": 0.2, "tail.enabled": False, "mode": None}, False),
        ({"upstreams.chat.replicas[0].sequences": 3}, True),
        (None, False),
    ]


def test_every_problem_is_told(capsys: pytest.CaptureFixture[str], admin: Admin) -> None:
    admin.panel.reloaded = Reloaded(problems=["admin API: a: unknown key", "admin API: b: unknown key"])
    ended = run(capsys, "tune", "a=1", "b=2", "--admin", admin.url)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.splitlines()[1:] == admin.panel.reloaded.problems


def test_what_is_set_and_who_set_it_is_shown(capsys: pytest.CaptureFixture[str], admin: Admin, tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text(f"server: {{admin_port: {admin.port}}}")
    assert run(capsys, "tune").out == "retries.ratio: 0.2\n"
    admin.panel.audit.note("file", "reload", ["a: 1 -> 2", "b: 1 -> 2"])
    admin.panel.audit.note("SIGHUP", "reload", [], ["no such key"])
    admin.panel.audit.note("admin API, ::1", "config", [])
    assert run(capsys, "tune", "--audit").out.splitlines() == [
        "1970-01-01 00:00:05 admin API, ::1: config: nothing differed",
        "1970-01-01 00:00:05 SIGHUP: reload: refused: no such key",
        "1970-01-01 00:00:05 file: reload: a: 1 -> 2",
        "1970-01-01 00:00:05 file: reload: b: 1 -> 2",
    ]


def test_what_is_no_assignment_is_told_so(capsys: pytest.CaptureFixture[str], admin: Admin) -> None:
    assert "must be KEY=VALUE" in run(capsys, "tune", "retries.ratio", "--admin", admin.url).err
