from __future__ import annotations

from pathlib import Path

from tests.config.places import ENGINE, settings_of
from tidegate.config import diff


def lines(folder: Path, old: str, new: str, env: dict[str, str] | None = None) -> list[str]:
    before = settings_of(folder, old, env)
    return [change.line() for change in diff(before, settings_of(folder, new, env))]


def test_what_differs_is_told_key_by_key(tmp_path: Path) -> None:
    old = f"{ENGINE}tail: {{timeouts: {{multiplier: 3}}}}\n"
    new = "upstreams: {chat: {replicas: [http://127.0.0.1:9, {url: http://h:1, sequences: 4}]}}\n"
    assert lines(tmp_path, old, f"{new}tail: {{timeouts: {{multiplier: 4}}}}") == [
        "upstreams.chat.replicas[1].url: set to http://h:1",
        "upstreams.chat.replicas[1].passthrough: set to False",
        "upstreams.chat.replicas[1].sequences: set to 4",
        "upstreams.chat.replicas[1].priority: set to False",
        "tail.timeouts.multiplier: 3.0 -> 4.0",
    ]
    assert "upstreams.chat.replicas[1].sequences: removed (was 4)" in lines(tmp_path, new, ENGINE)


def test_nothing_is_told_where_nothing_differs(tmp_path: Path) -> None:
    assert lines(tmp_path, ENGINE, f"# a comment\n{ENGINE}") == []


def test_what_takes_effect_after_a_restart_only_says_so(tmp_path: Path) -> None:
    engine = "upstreams: {chat: {engine: {sequences: 2}}}\n"
    assert lines(tmp_path, engine, f"{engine.replace('2', '3')}server: {{port: 9000, drain_s: 5}}") == [
        "server.port: 8000 -> 9000 (after a restart)",
        "server.drain_s: 30.0 -> 5.0",
        "upstreams.chat.engine.sequences: 2 -> 3 (after a restart)",
    ]


def test_values_out_of_variables_are_shown_as_written(tmp_path: Path) -> None:
    env = {"A": "secret-a", "B": "secret-b"}
    old, new = (f"upstreams: {{chat: {{replicas: [{{url: http://h:1, model: '${{{name}}}'}}]}}}}" for name in "AB")
    assert lines(tmp_path, old, new, env) == ["upstreams.chat.replicas[0].model: ${A} -> ${B}"]
