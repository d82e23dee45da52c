"""What operators set while the service runs: how it lies over the rest, and when the file wins again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.places import ENGINE
from tidegate.config import Settings, diff, load
from tidegate.config.live import LiveLayer
from tidegate.config.origin import ADMIN_API
from tidegate.errors import ConfigError

FILE = f"{ENGINE}retries: {{ratio: 0.2}}\n"


def read(folder: Path, live: LiveLayer | None = None, yaml: str = FILE) -> Settings:
    (folder / "tidegate.yaml").write_text(yaml)
    return load(None, {("retries", "most"): 50}, {}, folder, live=None if live is None else live.overrides())


def patched(folder: Path, *patches: dict[str, Any]) -> LiveLayer:
    live = LiveLayer()
    for patch in patches:
        live = live.patched(patch, read(folder))
    return live


@pytest.mark.parametrize("patch", [{"retries": {"ratio": 0.3, "most": 60}}, {"retries.ratio": 0.3, "retries.most": 60}])
def test_it_is_stronger_than_file_and_flags_and_says_where_it_came_from(tmp_path: Path, patch: dict[str, Any]) -> None:
    settings = read(tmp_path, patched(tmp_path, patch))
    assert (settings.retries.ratio, settings.retries.most, settings.retries.floor_per_s) == (0.3, 60, 1.0)
    assert settings.origin(("retries", "ratio")) is ADMIN_API
    assert [each.line() for each in diff(read(tmp_path), settings)] == [
        "retries.ratio: 0.2 -> 0.3",
        "retries.most: 50.0 -> 60.0",
    ]


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    wrong = {"retries": {"ratio": 7, "mots": 1}, "upstreams.chat.replicas[3].sequences": 4, "tail": {"enabled": "yes"}}
    with pytest.raises(ConfigError) as error:
        read(tmp_path, patched(tmp_path, wrong))
    assert sorted(problem.partition(": must")[0] for problem in error.value.problems) == [
        'admin API: retries.mots: unknown key (did you mean "most"?)',
        "admin API: retries.ratio",
        "admin API: tail.enabled",
        "admin API: upstreams.chat.replicas[3].sequences: there is no such key",
    ]


def test_null_takes_a_value_back_and_so_does_a_new_one_above_it(tmp_path: Path) -> None:
    live = patched(tmp_path, {"retries": {"ratio": 0.3, "most": 60}}, {"retries": {"ratio": None}})
    assert live.overrides() == {("retries", "most"): 60}
    assert patched(tmp_path, {"retries": {"ratio": 0.3}}, {"retries": None}).overrides() == {}
    urls = ["http://127.0.0.1:7"]
    replaced = patched(
        tmp_path, {"upstreams.chat.replicas[0].sequences": 3}, {"upstreams": {"chat": {"replicas": urls}}}
    )
    assert replaced.overrides() == {("upstreams", "chat", "replicas"): urls}


def test_a_replica_can_be_added_and_changed_at_its_place(tmp_path: Path) -> None:
    live = patched(tmp_path, {"upstreams.chat.replicas[1].url": "http://127.0.0.1:8"})
    settings = read(tmp_path, live.patched({"upstreams.chat.replicas[0].sequences": 3}, read(tmp_path)))
    assert [(each.url, each.sequences) for each in settings.upstreams["chat"].replicas] == [
        ("http://127.0.0.1:9", 3),
        ("http://127.0.0.1:8", None),
    ]


def test_it_holds_over_a_reload_until_the_file_says_something_new_there(tmp_path: Path) -> None:
    live = patched(tmp_path, {"retries": {"ratio": 0.3, "most": 60}, "upstreams.chat.replicas[1].url": "http://h:1"})
    same, none = live.without_overtaken(read(tmp_path, yaml=f"# a comment\n{FILE}quota: {{max_in_flight: 4}}\n"))
    assert (same.overrides(), none) == (live.overrides(), [])
    left, overtaken = live.without_overtaken(read(tmp_path, yaml=FILE.replace("0.2", "0.25")))
    assert overtaken == [("retries", "ratio")]
    assert list(left.overrides()) == [("retries", "most"), ("upstreams", "chat", "replicas", 1, "url")]


def test_what_is_bound_at_the_start_is_named(tmp_path: Path) -> None:
    live = patched(tmp_path, {"server": {"port": 1, "drain_s": 2}, "upstreams.chat.engine.kind": "embedded"})
    assert live.needing_restart() == [("server", "port"), ("upstreams", "chat", "engine", "kind")]
