from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import ENGINE, problems_of, settings_of
from tidegate.config import load
from tidegate.config.origin import Kind
from tidegate.errors import ConfigError


def test_no_file_gives_the_defaults(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert (settings.mode, settings.server.host, settings.server.port, settings.file) == (
        "production",
        "127.0.0.1",
        8000,
        None,
    )
    assert settings.origin(("server", "port")).kind is Kind.DEFAULT
    assert settings.upstreams == {}
    assert settings.warnings == ()


def test_the_file_in_the_current_folder_is_found(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "server: {port: 9000}")
    assert settings.server.port == 9000
    assert settings.file == tmp_path / "tidegate.yaml"


def test_a_named_file_goes_before_the_one_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_text("server: {port: 1}")
    other = tmp_path / "other.yaml"
    other.write_text("server: {port: 2}")
    assert load(other, {}, {}, tmp_path).server.port == 2


def test_a_named_file_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path / "absent.yaml", {}, {}, tmp_path)
    assert raised.value.problems == [f"{tmp_path}/absent.yaml: cannot be read: No such file or directory"]


def test_a_folder_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path, {}, {}, tmp_path)


def test_bytes_that_are_no_text_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_bytes(b"server: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text: invalid start byte at byte 8"):
        load(None, {}, {}, tmp_path)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "tidegate.yaml").write_bytes(b"\xef\xbb\xbfserver: {port: 9000}")
    assert load(None, {}, {}, tmp_path).server.port == 9000


def test_each_layer_beats_the_one_below(tmp_path: Path) -> None:
    key = ("shaping", "long_threshold_tokens")
    yaml = "shaping: {long_threshold_tokens: 2}"
    alias = {"VOLC_PRIORITY_THRESHOLD": "3"}
    env = {**alias, "TIDEGATE__SHAPING__LONG_THRESHOLD_TOKENS": "4"}
    layers = [
        settings_of(tmp_path),
        settings_of(tmp_path, yaml),
        settings_of(tmp_path, yaml, alias),
        settings_of(tmp_path, yaml, env),
        settings_of(tmp_path, yaml, env, {key: 5}),
    ]
    assert [each.shaping.long_threshold_tokens for each in layers] == [1024, 2, 3, 4, 5]
    assert [each.origin(key).kind.value for each in layers] == ["default", "file", "alias", "env", "flag"]
    assert layers[-1].origin(key).place() == "--set shaping.long_threshold_tokens"


def test_the_stability_file_is_weaker_than_the_yaml(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "stability.json").write_text(
        '{"tail_latency": {"enabled": true, "base_multiplier": 4, "window_seconds": 30, "trigger_count": 7,'
        ' "degrade_action": "error_response"}}'
    )
    settings = settings_of(tmp_path, "marks: {trigger_count: 9}")
    assert settings.tail.timeouts.multiplier == 4
    assert (settings.marks.window_s, settings.marks.trigger_count) == (30, 9)
    assert [rung.value for rung in settings.ladder.order] == ["error"]
    assert settings.origin(("tail", "timeouts", "multiplier")).kind is Kind.STABILITY


def test_a_mapping_is_merged_and_a_list_replaced(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        "server: {host: localhost, trusted_proxies: [10.0.0.0/8, 10.1.0.0/16]}",
        {"TIDEGATE__SERVER__TRUSTED_PROXIES": "[192.168.0.0/16]"},
    )
    assert settings.server.host == "localhost"
    assert settings.server.trusted_proxies == ("192.168.0.0/16",)


def test_a_section_whose_lines_are_all_commented_out_is_no_mistake(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "server:\n  # port: 9\ntail:\nupstreams:\n").server.port == 8000


def test_one_key_of_a_default_table_keeps_the_others(tmp_path: Path) -> None:
    classes = settings_of(tmp_path, "classes: {long: {max_wait_s: 3}, video: {weight: 2}}").classes
    assert (classes["long"].max_wait_s, classes["long"].queue_share) == (3, 0.5)
    assert classes["video"].weight == 2
    assert "interactive" in classes


def test_a_bare_url_is_a_replica_and_a_bare_word_an_engine(tmp_path: Path) -> None:
    upstream = settings_of(tmp_path, "upstreams: {chat: {replicas: ['http://127.0.0.1:9/'], engine: embedded}}")
    assert upstream.upstreams["chat"].replicas[0].url == "http://127.0.0.1:9"
    assert upstream.upstreams["chat"].engine is not None
    assert upstream.origin(("upstreams", "chat", "replicas", 0, "url")).place().endswith("tidegate.yaml:1:31")


def test_sizes_have_units(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "server: {max_body_bytes: 8 MiB}\nshaping: {queue: {max_bytes: 1GB}}")
    assert (settings.server.max_body_bytes, settings.shaping.queue.max_bytes) == (8 * 2**20, 10**9)


class TestDevMode:
    def test_it_keeps_the_slots_only(self, tmp_path: Path) -> None:
        settings = settings_of(tmp_path, ENGINE, {"VOLC_STABILITY_MODE": "dev"})
        on = (settings.slots.enabled, settings.lens.enabled)
        off = (
            settings.shaping.enabled,
            settings.limits.adaptive.enabled,
            settings.limits.prefill.enabled,
            settings.tail.enabled,
            settings.ladder.enabled,
        )
        assert on == (True, True)
        assert off == (False,) * 5
        assert settings.origin(("tail", "enabled")).place() == "mode: dev"

    def test_it_tells_what_it_overrules(self, tmp_path: Path) -> None:
        settings = settings_of(tmp_path, "mode: dev\ntail: {enabled: true}")
        assert settings.warnings == (f"{tmp_path}/tidegate.yaml:2:17: tail.enabled: true has no effect in mode: dev",)

    def test_any_other_mode_refuses_to_start(self, tmp_path: Path) -> None:
        (problem,) = problems_of(tmp_path, "", {"VOLC_STABILITY_MODE": "producton"})
        assert problem.startswith("environment VOLC_STABILITY_MODE: mode: must be 'production' or 'dev'")
        assert problem.endswith("""got 'producton' (did you mean "production"?)""")
        assert problems_of(tmp_path, "mode: test") == [
            "tidegate.yaml:1:7: mode: must be 'production' or 'dev', got 'test'"
        ]


def test_a_parameter_without_effect_is_told(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "", {"VOLC_GPU_UTILIZATION_HIGH": "75"})
    assert settings.shaping.gpu_utilization_high_percent == 75
    (warning,) = settings.warnings
    assert warning.startswith("environment VOLC_GPU_UTILIZATION_HIGH: shaping.gpu_utilization_high_percent: no effect")


def test_a_value_under_something_that_holds_none_is_a_problem(tmp_path: Path) -> None:
    yaml = "upstreams: {chat: {replicas: [http://127.0.0.1:9]}}"
    assert problems_of(tmp_path, yaml, {"TIDEGATE__UPSTREAMS__CHAT__REPLICAS__7__URL": "http://x"}) == [
        "environment TIDEGATE__UPSTREAMS__CHAT__REPLICAS__7__URL: upstreams.chat.replicas[7].url: there is no such key"
    ]
