from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import problems_of, settings_of
from tidegate.config.checks import is_loopback

A = "a" * 64


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("h", False)],
)
def test_loopback_addresses_are_known(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here


def test_images_go_to_an_upstream_that_takes_them_itself(tmp_path: Path) -> None:
    yaml = """\
        upstreams:
          chat: {replicas: ['http://h:1'], images_to: eey}
          other: {replicas: ['http://h:2'], images_to: other}
          third: {replicas: ['http://h:3'], images_to: other}
          eye: {replicas: ['http://h:4']}
          fine: {replicas: ['http://h:5'], images_to: eye}
        """
    assert [problem.split(": ", 1)[1] for problem in problems_of(tmp_path, yaml)] == [
        "upstreams.chat.images_to: there is no upstream 'eey' (did you mean \"eye\"?)",
        "upstreams.other.images_to: must name an upstream that takes images itself, and other sends them on",
        "upstreams.third.images_to: must name an upstream that takes images itself, and other sends them on",
    ]


def test_long_prompts_go_to_an_upstream_that_takes_them_itself(tmp_path: Path) -> None:
    yaml = """\
        upstreams:
          chat: {replicas: ['http://h:1'], on_overlength: route_long}
          other: {replicas: ['http://h:2'], on_overlength: route_long, long_to: wyde}
          third: {replicas: ['http://h:3'], on_overlength: route_long, long_to: fine}
          fourth: {replicas: ['http://h:4'], long_to: wide}
          fine: {replicas: ['http://h:5'], on_overlength: route_long, long_to: wide}
          wide: {replicas: ['http://h:6'], on_overlength: truncate}
        """
    assert [problem.split(": ", 1)[1] for problem in problems_of(tmp_path, yaml)] == [
        "upstreams.chat.on_overlength: route_long needs long_to, the upstream to send to",
        "upstreams.other.long_to: there is no upstream 'wyde' (did you mean \"wide\"?)",
        "upstreams.third.long_to: must name an upstream that takes long prompts itself, and fine sends them on",
        "upstreams.fourth.long_to: has no meaning without on_overlength: route_long",
    ]


def test_a_port_that_others_reach_needs_keys(tmp_path: Path) -> None:
    data, admin = problems_of(tmp_path, "server: {host: 0.0.0.0, admin_host: '::'}")
    assert data.startswith("tidegate.yaml:1:16: server.host: 0.0.0.0 can be reached from other machines")
    assert admin.startswith("tidegate.yaml:1:37: server.admin_host: :: can be reached from other machines")
    keys = f"api_keys: [{{name: a, sha256: {A}}}], admin_tokens: [{A.upper()}]"
    server = settings_of(tmp_path, f"server: {{host: 0.0.0.0, admin_host: '::', {keys}}}").server
    assert server.admin_tokens == (A,)


def test_two_ports_cannot_be_one(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "server: {port: 8001}") == [
        "tidegate.yaml:1:1: server.admin_port: is the data port too (8001); give each its own"
    ]
    assert problems_of(tmp_path, "server: {port: 0, admin_port: 0}") == []
    assert problems_of(tmp_path, "server: {port: 8001, admin_host: localhost}") == []


def test_keys_are_given_once(tmp_path: Path) -> None:
    yaml = f"server: {{api_keys: [{{name: a, sha256: {A}}}, {{name: a, sha256: {A}}}]}}"
    name, key = problems_of(tmp_path, yaml)
    assert name.endswith("server.api_keys[1].name: the API key name 'a' is given twice")
    assert key.endswith(f"server.api_keys[1].sha256: the API key '{A[:40]}' is given twice")


def test_an_upstream_needs_something_behind_it(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "upstreams: {chat: {}}") == [
        "tidegate.yaml:1:19: upstreams.chat: has neither replicas nor an engine; give one URL under replicas"
    ]


def test_replicas_and_their_names_are_given_once(tmp_path: Path) -> None:
    yaml = """\
        upstreams:
          a: {replicas: [http://h:1, http://h:1]}
          b: {replicas: [{url: http://h:2, name: a-0}]}
        """
    assert problems_of(tmp_path, yaml) == [
        "tidegate.yaml:2:30: upstreams.a.replicas[1].url: the replica 'http://h:1' is given twice",
        "tidegate.yaml:3:42: upstreams.b.replicas[0].name: the replica name 'a-0' is given twice",
    ]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("api_key_env: K, api_key_file: {here}/key", "api_key_file: api_key_env is given too; keep one"),
        ("api_key_env: K, passthrough: true", "passthrough: api_key_env is given too: send the client's key or our"),
        ("api_key_env: NOT_SET", "api_key_env: environment variable NOT_SET is not set"),
        ("api_key_file: /no/such", "api_key_file: there is no file /no/such"),
        ("sni: engine", "sni: has no meaning without TLS; the URL begins with http://"),
        ("slot_size_mib: 4, slot_tokens: 4, bytes_per_token: 4", "slot_tokens: slot_size_mib is given too; keep one"),
        ("slot_size_mib: 4", "slot_size_mib: needs bytes_per_token, to tell how many tokens that is"),
        ("kv_pool_bytes: 4", "kv_pool_bytes: needs bytes_per_token, to tell how many tokens that is"),
        ("kv_tokens: 4096, kv_pool_bytes: 4, bytes_per_token: 4", "kv_pool_bytes: kv_tokens is given too; keep one"),
        ("kv_tokens: 100", ": its pool of 100 tokens is less than one slot (256)"),
    ],
)
def test_keys_of_a_replica_that_contradict_each_other_are_told(tmp_path: Path, keys: str, problem: str) -> None:
    (tmp_path / "key").write_text("secret")
    yaml = f"upstreams: {{chat: {{replicas: [{{url: http://h:1, {keys.format(here=tmp_path)}}}]}}}}"
    (told,) = problems_of(tmp_path, yaml, {"K": "k"})
    expected = f"upstreams.chat.replicas[0]{problem if problem.startswith(':') else f'.{problem}'}"
    assert told.split(" ", 1)[1].startswith(expected)


def test_files_of_a_tls_replica_must_be_there(tmp_path: Path) -> None:
    (told,) = problems_of(tmp_path, "upstreams: {chat: {replicas: [{url: https://h, ca_file: /no/such.pem}]}}")
    assert told.endswith("upstreams.chat.replicas[0].ca_file: there is no file /no/such.pem")


def test_the_model_of_a_started_engine_must_be_there(tmp_path: Path) -> None:
    (told,) = problems_of(tmp_path, "upstreams: {chat: {engine: {model_path: /no/such.gguf}}}")
    assert told.endswith("upstreams.chat.engine.model_path: there is no file /no/such.gguf")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("tokenizer: /no/such", ".tokenizer: there is no file /no/such"),
        ("tokenizer: {here}", ".tokenizer: there is no tokenizer.json in {here}"),
        ("forward_token_ids: true", ".forward_token_ids: needs tokenizer, the file that makes the ids"),
    ],
)
def test_a_tokenizer_must_be_there_and_ids_need_one(tmp_path: Path, keys: str, problem: str) -> None:
    yaml = f"upstreams: {{chat: {{replicas: [http://h:1], {keys.format(here=tmp_path)}}}}}"
    (told,) = problems_of(tmp_path, yaml)
    assert told.endswith("upstreams.chat" + problem.format(here=tmp_path))


def test_a_tokenizer_may_be_a_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        yaml = f"upstreams: {{chat: {{replicas: [http://h:1], tokenizer: {path}, forward_token_ids: true}}}}"
        assert settings_of(tmp_path, yaml).upstreams["chat"].tokenizer == str(path)


@pytest.mark.parametrize("missing", ["tokenizers", "jinja2"])
def test_a_tokenizer_without_its_libraries_is_told_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setattr("tidegate.config.checks.find_spec", lambda name: None if name == missing else name)
    (told,) = problems_of(tmp_path, f"upstreams: {{chat: {{replicas: [http://h:1], tokenizer: {tmp_path}}}}}")
    assert told.endswith("upstreams.chat.tokenizer: needs two libraries more: pip install 'tidegate[tokenizers]'")


def test_too_many_sequences_refuse_to_start_where_asked(tmp_path: Path) -> None:
    replica = "{url: http://h:1, kv_tokens: 24576, slot_tokens: 256, sequences: 256}"
    yaml = f"upstreams: {{chat: {{replicas: [{replica}]}}}}\nslots: {{overcommit: MODE}}\n"
    (told,) = problems_of(tmp_path, yaml.replace("MODE", "fail"))
    assert told.startswith("tidegate.yaml:1:96: upstreams.chat.replicas[0].sequences: 256 sequences asked of chat-0")
    assert told.endswith(
        "which has 96 slots: at most 96 run beside each other (recommended: 76); slots.overcommit is fail"
    )
    (warning,) = settings_of(tmp_path, yaml.replace("MODE", "clamp")).warnings
    assert "at most 96 run" in warning
    assert settings_of(tmp_path, yaml.replace("overcommit: MODE", "enabled: false")).warnings == ()
