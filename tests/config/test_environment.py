from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import ENGINE, problems_of, settings_of
from tidegate.config.environment import ALIASES


def test_a_variable_is_typed_by_what_stands_at_its_key(tmp_path: Path) -> None:
    env = {
        "TIDEGATE__SERVER__PORT": "9000",
        "TIDEGATE__SERVER__LOG_REQUESTS": "true",
        "TIDEGATE__SERVER__DRAIN_S": "2.5",
        "TIDEGATE__SERVER__MAX_BODY_BYTES": "1MiB",
        "TIDEGATE__SERVER__HOST": "localhost",
        "TIDEGATE__UPSTREAMS__CHAT__REPLICAS__0__MODEL": "123",
        "TIDEGATE__LADDER__ORDER": "[error]",
        "TIDEGATE__SLOTS__OVERCOMMIT": "fail",
    }
    settings = settings_of(tmp_path, ENGINE, env)
    server = settings.server
    assert (server.port, server.log_requests, server.drain_s) == (9000, True, 2.5)
    assert (server.max_body_bytes, server.host) == (2**20, "localhost")
    assert settings.upstreams["chat"].replicas[0].model == "123"
    assert [rung.value for rung in settings.ladder.order] == ["error"]
    assert settings.origin(("server", "port")).place() == "environment TIDEGATE__SERVER__PORT"


def test_a_whole_upstream_can_come_from_variables(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "", {"TIDEGATE__UPSTREAMS__CHAT__REPLICAS__0__URL": "http://127.0.0.1:9"})
    assert settings.upstreams["chat"].replicas[0].url == "http://127.0.0.1:9"


def test_chosen_names_match_whatever_their_case_and_signs(tmp_path: Path) -> None:
    yaml = "upstreams: {Qwen2.5-7B: {replicas: [http://127.0.0.1:9]}}"
    settings = settings_of(tmp_path, yaml, {"TIDEGATE__UPSTREAMS__QWEN2_5_7B__REPLICAS__0__SEQUENCES": "8"})
    assert list(settings.upstreams) == ["Qwen2.5-7B"]
    assert settings.upstreams["Qwen2.5-7B"].replicas[0].sequences == 8


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "", {"TIDEGATE__SERVER__PORT": "", "VOLC_STABILITY_MODE": ""}).server.port == 8000


def test_an_unknown_variable_of_ours_refuses_to_start(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "", {"TIDEGATE__SERVER__PROT": "1", "TIDEGATE_TRACES": "x"}) == [
        'environment TIDEGATE__SERVER__PROT: server.prot: unknown key (did you mean "port"?)'
    ]


@pytest.mark.parametrize("name", ["TIDEGATE__", "TIDEGATE__SERVER____PORT", "TIDEGATE____"])
def test_a_variable_that_names_no_key_is_a_problem(tmp_path: Path, name: str) -> None:
    (problem,) = problems_of(tmp_path, "", {name: "1"})
    assert problem.startswith(f"environment {name}: ")


def test_every_alias_leads_to_a_key(tmp_path: Path) -> None:
    env = {"VOLC_STABILITY_MODE": "dev"} | dict.fromkeys(list(ALIASES)[1:], "77")
    settings = settings_of(tmp_path, ENGINE, env)
    assert settings.mode == "dev"
    assert settings.slots.slot_size_mib == 77
    assert settings.shaping.queue.max_requests == 77
    assert settings.shaping.long_threshold_tokens == 77
    assert settings.shaping.gpu_utilization_high_percent == 77


def test_an_unknown_alias_is_told_and_ignored(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "", {"VOLC_BUFFER_QUEUE_SIZ": "1"}).warnings == (
        'environment VOLC_BUFFER_QUEUE_SIZ: not known, ignored (did you mean "VOLC_BUFFER_QUEUE_SIZE"?)',
    )


class TestPrefixCaching:
    NAME = "VLLM_ENABLE_PREFIX_CACHING"

    def test_it_goes_to_every_engine_that_tidegate_starts(self, tmp_path: Path) -> None:
        yaml = "upstreams: {a: {engine: embedded}, b: {engine: {prefix_caching: true}}}"
        settings = settings_of(tmp_path, yaml, {self.NAME: "false"})
        engines = [upstream.engine for upstream in settings.upstreams.values()]
        assert [engine is not None and engine.prefix_caching for engine in engines] == [False, False]
        assert settings.warnings == ()

    def test_a_variable_of_ours_is_stronger(self, tmp_path: Path) -> None:
        env = {self.NAME: "false", "TIDEGATE__UPSTREAMS__A__ENGINE__PREFIX_CACHING": "true"}
        engine = settings_of(tmp_path, "upstreams: {a: {engine: embedded}}", env).upstreams["a"].engine
        assert engine is not None
        assert engine.prefix_caching is True

    def test_without_such_an_engine_it_has_no_effect_and_says_so(self, tmp_path: Path) -> None:
        (warning,) = settings_of(tmp_path, ENGINE, {self.NAME: "true"}).warnings
        assert warning.startswith(f"environment {self.NAME}: no effect, Tidegate starts no engine here")


class TestReferences:
    def test_they_are_replaced_and_typed(self, tmp_path: Path) -> None:
        yaml = "server: {port: '${PORT}', host: '${HOST:-localhost}'}"
        server = settings_of(tmp_path, yaml, {"PORT": "9000"}).server
        assert (server.port, server.host) == (9000, "localhost")

    def test_they_stand_inside_text_too(self, tmp_path: Path) -> None:
        yaml = "upstreams: {chat: {replicas: ['http://${H}:${P:-9}']}}"
        assert settings_of(tmp_path, yaml, {"H": "localhost"}).upstreams["chat"].replicas[0].url == "http://localhost:9"

    def test_the_origin_keeps_the_text_that_may_be_shown(self, tmp_path: Path) -> None:
        origin = settings_of(tmp_path, "server: {host: '${H}'}", {"H": "localhost"}).origin(("server", "host"))
        assert origin.raw == "${H}"

    def test_an_unset_one_is_told_with_its_place(self, tmp_path: Path) -> None:
        (problem,) = problems_of(tmp_path, "server: {host: '${NO_SUCH}'}")
        assert problem.startswith("tidegate.yaml:1:16: server.host: environment variable NO_SUCH is not set")
        assert problem.endswith("(set it, or write ${NO_SUCH:-default})")

    def test_a_bad_value_names_the_variable_and_not_what_it_holds(self, tmp_path: Path) -> None:
        assert problems_of(tmp_path, "server: {port: '${PORT}'}", {"PORT": "secret"}) == [
            "tidegate.yaml:1:16: server.port: must be a whole number (from ${PORT})"
        ]
