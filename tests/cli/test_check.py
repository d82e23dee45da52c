from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import run
from tidegate.cli.check import FIELDS

SOUND = """\
server: {port: 9000}
upstreams:
  chat:
    replicas:
      - {url: http://127.0.0.1:9, kv_tokens: 24576, sequences: 256}
      - http://127.0.0.1:8
    engine: embedded
shaping: {enabled: false}
"""
FAULTY = "server: {prot: 1, port: x}\nmode: staging\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sound_file_is_summed_up(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "tidegate.yaml").write_text(SOUND)
    ended = run(capsys, "check")
    assert ended.status == 0
    assert ended.out.splitlines() == [
        "ok: tidegate.yaml (7 by file)",
        "mode production; API on http://127.0.0.1:9000, admin on http://127.0.0.1:8001",
        "off: shaping",
        "chat: chat-0 at http://127.0.0.1:9, 96 slots, 96 sequences",
        "chat: chat-1 at http://127.0.0.1:8, slots not known yet",
        "chat: chat-embedded at embedded engine, 4 slots, 4 sequences",
    ]
    assert ended.err.startswith("WARN 256 sequences asked of chat-0")


def test_nothing_configured_is_sound_too(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "check")
    assert ended.out.splitlines()[0] == "ok: no file (all defaults)"
    assert ended.out.splitlines()[-1].startswith("no upstream: tidegate serve starts the small engine")


def test_every_problem_is_told_and_the_status_is_1(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "other.yaml").write_text(FAULTY)
    ended = run(capsys, "check", "other.yaml")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        'other.yaml:1:10: server.prot: unknown key (did you mean "port"?)',
        "other.yaml:1:25: server.port: must be a whole number, got 'x'",
        "other.yaml:2:7: mode: must be 'production' or 'dev', got 'staging'",
    ]


def test_json_is_one_object_whatever_the_verdict(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "tidegate.yaml").write_text(SOUND)
    sound = json.loads(run(capsys, "check", "--json").out)
    assert (sound["ok"], sound["file"], sound["problems"]) == (True, "tidegate.yaml", [])
    assert len(sound["warnings"]) == 1
    assert sound["summary"]["upstreams"]["chat"][0] == {
        "name": "chat-0",
        "at": "http://127.0.0.1:9",
        "slots": 96,
        "sequences": 96,
        "command": None,
    }
    assert sound["summary"]["set"]["file"] == 7
    (folder / "tidegate.yaml").write_text(FAULTY)
    ended = run(capsys, "check", "tidegate.yaml", "--json")
    faulty = json.loads(ended.out)
    assert (ended.status, faulty["ok"], faulty["summary"]) == (1, False, None)
    assert len(faulty["problems"]) == 3
    assert sound.keys() == faulty.keys()


def test_the_schema_names_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads(run(capsys, "check", "--schema").out)["fields"]
    assert fields == FIELDS
    summed = json.loads(run(capsys, "check", "--json").out)
    named = {*summed, *(f"summary.{name}" for name in summed["summary"])}
    assert named == set(fields)


def test_flags_and_environment_are_checked_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE__SERVER__PORT", "70000")
    ended = run(capsys, "check", "--upstream", "nonsense")
    assert ended.err.startswith("--upstream nonsense: must be [NAME=]URL")
    ended = run(capsys, "check", "--upstream", "chat=http://127.0.0.1:9", "--set", "mode=dve")
    assert ended.err.splitlines() == [
        "--mode: mode: must be 'production' or 'dev', got 'dve' (did you mean \"dev\"?)",
        "environment TIDEGATE__SERVER__PORT: server.port: must be at most 65535, got 70000",
    ]
