"""Configuration and what engines told become the data process's settings, and survive the channel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tidegate.config import Settings as Config
from tidegate.config import load
from tidegate.errors import ConfigError
from tidegate.gateway.composition import Told, compose, endpoint_of, keep_started, plans_told, pool_lines, proxy_of
from tidegate.gateway.settings import Endpoint, from_plain, to_plain
from tidegate.policy.abnormal import Handling, OnOverlength, Overlength
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Action, Problem
from tidegate.policy.reading import Capacity

YAML = """
server:
  port: 9000
  heartbeat_s: 3
  log_requests: true
  api_keys:
    - {name: ann, sha256: "%s", tenant: acme}
upstreams:
  chat:
    replicas:
      - http://10.0.0.1:8000/v1/
      - {url: "https://engine.example/base", name: far, model: qwen, api_key_env: ENGINE_KEY, context_tokens: 4096}
  tiny:
    engine: embedded
""" % ("ab" * 32)

PAGED = Capacity(kv_tokens=8192, slot_tokens=256, sequences=8, context_tokens=2048)

ENV = {"ENGINE_KEY": "sesame"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "tidegate.yaml"
    file.write_text(YAML)
    return load(file, {}, ENV)


def test_every_replica_has_its_endpoint_under_the_name_that_policies_know(config: Config) -> None:
    settings = compose(config, {}, ENV)
    assert [each.name for each in settings.endpoints] == [each.name for each in settings.path.replicas]
    near, far, started = settings.endpoints
    assert (near.host, near.port, near.base_path, near.model) == ("10.0.0.1", 8000, "", None)
    assert (far.host, far.port, far.base_path, far.is_tls) == ("engine.example", 443, "/base", True)
    assert (far.model, far.api_key) == ("qwen", "sesame")
    assert started == Endpoint(name="tiny-embedded", host="127.0.0.1", port=0)


def test_classes_rank_by_weight_for_the_engines_that_order_by_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    engine = f"{{kind: vllm, model: {tmp_path}, context_tokens: 512, kv_blocks: 80, block_tokens: 32}}"
    replicas = "[{url: 'http://h:1', priority: true}, 'http://h:2']"
    file = tmp_path / "tidegate.yaml"
    file.write_text(f"upstreams: {{chat: {{replicas: {replicas}, engine: {engine}}}}}")
    told, untold, started = compose(load(file, {}, {}), {}, {}).endpoints
    assert dict(told.priorities) == {"interactive": 0, "long": 1, "other": 1, "batch": 2}
    assert untold.priorities == ()
    assert started.name == "chat-vllm"
    assert started.priorities == told.priorities
    alike = load(file, {("shaping", "enabled"): False}, {})
    assert [each.priorities for each in compose(alike, {}, {}).endpoints] == [(), (), ()]


def test_what_engines_told_completes_what_the_file_leaves_open_and_never_overrides_it(config: Config) -> None:
    told = {
        "chat-0": Told(capacity=PAGED, confirms_aborts=True, abort_grace_s=9.0),
        "far": Told(capacity=Capacity(context_tokens=32768), model="other"),
    }
    near, far, _ = compose(config, told, ENV).path.replicas
    assert (near.capacity.kv_tokens, near.capacity.slots, near.capacity.sequences) == (8192, 32, 8)
    assert (near.confirms_aborts, near.abort_grace_s) == (True, 9.0)
    assert far.capacity.context_tokens == 4096
    assert plans_told(config, told)["chat-0"].slots == 32


def test_an_engines_own_unit_of_memory_is_the_slot_unless_the_file_says_otherwise(config: Config) -> None:
    told = {"chat-0": Told(capacity=Capacity(kv_tokens=8192, slot_tokens=2048))}
    assert plans_told(config, told)["chat-0"].slots == 4
    near = config.upstreams["chat"].replicas[0].model_copy(update={"slot_tokens": 128})
    chat = config.upstreams["chat"].model_copy(update={"replicas": (near,)})
    sized = config.model_copy(update={"upstreams": {"chat": chat}})
    assert plans_told(sized, told)["chat-0"].slots == 64


def test_a_reload_keeps_what_was_started_or_bound_until_a_restart(config: Config) -> None:
    server = config.server.model_copy(update={"port": 1, "admin_port": 2, "heartbeat_s": 9.0})
    chat = config.upstreams["chat"]
    new = config.model_copy(update={"server": server, "upstreams": {"chat": chat, "late": config.upstreams["tiny"]}})
    kept = keep_started(config, new)
    assert (kept.server.port, kept.server.admin_port, kept.server.heartbeat_s) == (9000, 8001, 9.0)
    assert kept.upstreams["chat"] == chat
    assert kept.upstreams["tiny"].engine == config.upstreams["tiny"].engine
    assert "late" not in kept.upstreams


def test_groups_reach_the_data_process_and_what_an_engine_tells_leaves_them_alone(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text(
        "upstreams: {chat: {replicas: [{url: 'http://h:1', bytes_per_token: 1024}]}}\n"
        "pools: {card: {kv_bytes: 1GiB, groups: {text: {members: [chat], floor: 0.5}}}}\n"
    )
    settings = compose(load(file, {}, ENV), {"chat-0": Told(capacity=PAGED, confirms_aborts=True)}, ENV)
    (replica,), (pool,) = settings.path.replicas, settings.path.groups.pools
    assert (replica.group, replica.capacity.bytes_per_token, replica.capacity.kv_tokens) == ("card/text", 1024, 8192)
    assert (pool.budget_bytes, pool.groups[0].floor_bytes) == (2**30, 2**29)
    assert from_plain(msgspec.json.decode(msgspec.json.encode(to_plain(settings)))) == settings


def test_images_are_sent_on_under_the_name_that_the_other_engine_knows(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text(
        "upstreams:\n  chat: {replicas: ['http://h:1'], images_to: eye}\n  eye: {replicas: ['http://h:2']}\n"
        "  sight: {engine: embedded}\n  plain: {replicas: ['http://h:3'], images_to: sight}\n"
    )
    config = load(file, {}, ENV)
    settings = compose(config, {}, ENV)
    assert settings.images_to == {"chat": "eye", "plain": "sight"}
    assert {each.name: each.model for each in settings.endpoints} == {
        "chat-0": None,
        "eye-0": "eye",
        "sight-embedded": "sight",
        "plain-0": None,
    }
    assert from_plain(msgspec.json.decode(msgspec.json.encode(to_plain(settings)))) == settings
    assert keep_started(config, config).upstreams == config.upstreams


def test_every_replica_of_an_upstream_has_its_tokenizer_and_a_reload_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    file = tmp_path / "tidegate.yaml"
    file.write_text(
        "upstreams:\n"
        f"  chat: {{replicas: ['http://h:1'], engine: embedded, tokenizer: {tmp_path}, forward_token_ids: true}}\n"
        "  other: {replicas: ['http://h:2']}\n"
    )
    config = load(file, {}, ENV)
    settings = compose(config, {}, ENV)
    found = {each.name: (each.tokenizer, each.takes_token_ids) for each in settings.endpoints}
    assert found == {"chat-0": (str(tmp_path), True), "chat-embedded": (str(tmp_path), True), "other-0": (None, False)}
    assert keep_started(config, config).upstreams == config.upstreams


def test_an_engine_that_serves_one_other_model_is_asked_for_that_one(config: Config) -> None:
    told = {"chat-0": Told(model="Qwen2-7B"), "far": Told(model="other")}
    near, far, _ = compose(config, told, ENV).endpoints
    assert (near.model, far.model) == ("Qwen2-7B", "qwen")


def test_sequences_that_a_told_pool_does_not_hold_are_clamped_with_a_line_or_refused(config: Config) -> None:
    near = config.upstreams["chat"].replicas[0].model_copy(update={"sequences": 64})
    chat = config.upstreams["chat"].model_copy(update={"replicas": (near,)})
    asked = config.model_copy(update={"upstreams": {"chat": chat}})
    assert pool_lines(asked, {}, "fail") == []
    told = {"chat-0": Told(capacity=PAGED)}
    (line,) = pool_lines(asked, told, "clamp")
    assert "64 sequences asked of chat-0, which has 32 slots" in line
    assert compose(asked, told, ENV).path.replicas[0].capacity.sequences == 32
    with pytest.raises(ConfigError, match=r"slots\.overcommit: fail: 64 sequences"):
        pool_lines(asked, told, "fail")
    off = asked.model_copy(update={"slots": asked.slots.model_copy(update={"enabled": False})})
    assert pool_lines(off, told, "fail") == []


def test_without_the_lens_no_row_travels_unless_each_request_is_logged(config: Config) -> None:
    off = config.model_copy(update={"lens": config.lens.model_copy(update={"enabled": False})})
    quiet = off.model_copy(update={"server": off.server.model_copy(update={"log_requests": False})})
    assert [compose(each, {}, ENV).are_rows_sent for each in (config, off, quiet)] == [True, True, False]


def test_the_data_process_learns_which_adapter_fits(config: Config) -> None:
    near, far, _ = compose(config, {"chat-0": Told(kind="vllm")}, ENV).endpoints
    assert (near.kind, far.kind) == ("vllm", "openai")


def test_an_engine_that_was_started_is_reached_where_it_says(config: Config) -> None:
    here = Endpoint(name="tiny-embedded", host="127.0.0.1", port=4711, api_key="k")
    assert compose(config, {"tiny-embedded": Told(endpoint=here)}, ENV).endpoints[-1] == here


def test_the_server_section_arrives(config: Config) -> None:
    settings = compose(config, {}, ENV)
    assert (settings.port, settings.timers.heartbeat_s, settings.are_requests_logged) == (9000, 3.0, True)
    assert [(key.sha256, key.tenant) for key in settings.api_keys] == [("ab" * 32, "acme")]
    assert settings.is_cache_enabled


def test_settings_survive_the_channel(config: Config) -> None:
    settings = compose(config, {"chat-0": Told(capacity=PAGED)}, ENV)
    packed = msgspec.msgpack.encode(to_plain(settings))
    assert from_plain(msgspec.msgpack.decode(packed)) == settings


def test_a_key_is_read_from_its_file_and_a_missing_one_is_said_so(tmp_path: Path, config: Config) -> None:
    key = tmp_path / "key"
    key.write_text(" secret\n")
    far = config.upstreams["chat"].replicas[1]
    from_file = far.model_copy(update={"api_key_env": None, "api_key_file": str(key)})
    assert endpoint_of(from_file, "far", {}).api_key == "secret"
    key.unlink()
    with pytest.raises(ConfigError, match="api_key_file"):
        endpoint_of(from_file, "far", {})


def test_proxies_come_from_the_environment_but_never_between_us_and_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_of("http", "engine.example") == "http://proxy.example:3128"
    assert proxy_of("http", "inside.example") is None
    for host in ("localhost", "127.0.0.1", "::1"):
        assert proxy_of("http", host) is None


def test_streams_go_on_where_the_configuration_says_how(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    replicas = "replicas: ['http://h:1', 'http://h:2']"
    file.write_text(
        f"upstreams:\n  a: {{{replicas}, continuation: text}}\n  b: {{{replicas}, continuation: off}}\n"
        f"  c: {{{replicas}}}\n"
    )
    assert compose(load(file, {}, ENV), {}, ENV).continuation == {"a": "text"}


def test_models_may_have_rules_of_their_own_for_answers_and_long_prompts(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("""
input: {control_chars: reject}
output: {repetitive: stop, faults: [output_empty]}
upstreams:
  chat: {replicas: ["http://h:1"], on_overlength: route_long, long_to: wide, output: {empty: mark, wants_json: true}}
  wide: {replicas: ["http://h:2"], on_overlength: truncate}
  plain: {replicas: ["http://h:3"]}
""")
    settings = from_plain(msgspec.msgpack.decode(msgspec.msgpack.encode(to_plain(compose(load(file, {}, {}), {}, {})))))
    assert settings.input.control_chars is Handling.REJECT
    assert settings.output == OutputConfig(repetitive=Action.STOP, faults=(Problem.EMPTY,))
    assert settings.outputs == {"chat": replace(settings.output, empty=Action.MARK, wants_json=True)}
    assert settings.overlength == {
        "chat": Overlength(action=OnOverlength.ROUTE_LONG, long_to="wide"),
        "wide": Overlength(action=OnOverlength.TRUNCATE),
    }
    # What was asked of chat names its model, which wide does not serve.
    assert [each.model for each in settings.endpoints] == [None, "wide", None]
