from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tests.config.places import ENGINE, problems_of, settings_of
from tidegate.config import Settings, load
from tidegate.config.parameters import Shape, parameters
from tidegate.config.section import plain
from tidegate.errors import ConfigError

ALL_FAULTS = """\
mode: staging
server:
  prot: 8000
  port: "8000"
  admin_port: 70000
  host: 0.0.0.0
  api_keys: [{name: a}]
upstreams:
  chat:
    replicas:
      - http://127.0.0.1:9
      - {url: ftp://x, kv_token: 3, sequences: true}
      - {url: http://127.0.0.1:8, ca_file: none.pem}
    engine: embeded
tail:
  timeouts: {multiplier: 1, first_byte: {floor_s: 400}}
slots: {enabled: yes, default_max_tokens: 1.5}
ladder: {order: [cache, eror]}
server2: 1
"""


def test_faults_of_every_kind_are_told_in_one_pass(tmp_path: Path) -> None:
    env = {"TIDEGATE__SERVER__KEEP_ALIVE_S": "x", "VOLC_PRIORITY_THRESHOLD": "0"}
    told = """\
tidegate.yaml:1:7: mode: must be 'production' or 'dev', got 'staging'
tidegate.yaml:3:3: server.prot: unknown key (did you mean "port"?)
tidegate.yaml:4:9: server.port: must be a whole number, got '8000'
tidegate.yaml:5:15: server.admin_port: must be at most 65535, got 70000
tidegate.yaml:7:14: server.api_keys[0].sha256: is required
tidegate.yaml:12:15: upstreams.chat.replicas[1].url: must be a URL such as http://127.0.0.1:8000 or \
https://host/base, got 'ftp://x'
tidegate.yaml:12:24: upstreams.chat.replicas[1].kv_token: unknown key (did you mean "kv_tokens"?)
tidegate.yaml:12:48: upstreams.chat.replicas[1].sequences: must be a whole number, got true
tidegate.yaml:13:44: upstreams.chat.replicas[2].ca_file: has no meaning without TLS; the URL begins with http://
tidegate.yaml:14:13: upstreams.chat.engine: kind must be 'embedded' or 'vllm', got 'embeded' (did you mean "embedded"?)
tidegate.yaml:16:26: tail.timeouts.multiplier: must be more than 1.0, got 1
tidegate.yaml:16:41: tail.timeouts.first_byte: a timeout needs 0 < floor_s <= default_s <= ceiling_s \
(here: floor_s=400.0, ceiling_s=300.0, default_s=120.0)
tidegate.yaml:17:18: slots.enabled: must be true or false, got 'yes'
tidegate.yaml:17:43: slots.default_max_tokens: must be a whole number, got 1.5
tidegate.yaml:18:25: ladder.order[1]: must be 'cache', 'simplify_output', 'light_model', 'standby' or 'error', \
got 'eror' (did you mean "error"?)
tidegate.yaml:19:1: server2: unknown key (did you mean "server"?)
--set lens.ring_records: lens.ring_records: must be at least 1, got -1
environment TIDEGATE__SERVER__KEEP_ALIVE_S: server.keep_alive_s: must be a number, got 'x'
environment VOLC_PRIORITY_THRESHOLD: shaping.long_threshold_tokens: must be at least 1, got 0
"""
    assert problems_of(tmp_path, ALL_FAULTS, env, {("lens", "ring_records"): "-1"}) == told.splitlines()


@pytest.mark.parametrize(
    ("yaml", "problem"),
    [
        ("server: 3", "1:9: server: must be a section (key: value), got 3"),
        ("server: [1]", "1:9: server: must be a section (key: value), got a list"),
        ("upstreams: {chat: }", "1:18: upstreams.chat: must be a section (key: value), got nothing"),
        ("upstreams: [a]", "1:12: upstreams: must be a mapping (key: value), got a list"),
        ("upstreams: {'': {engine: embedded}}", "1:13: upstreams.\"\": must not be empty, got ''"),
        ("server: {trusted_proxies: 10.0.0.0/8}", "1:27: server.trusted_proxies: must be a list, got '10.0.0.0/8'"),
        ("server: {host: 5}", "1:16: server.host: must be text (put quotes around it), got 5"),
        ("server: {port: 1.5}", "1:16: server.port: must be a whole number, got 1.5"),
        ("server: {drain_s: .inf}", "1:19: server.drain_s: must be a finite number, got inf"),
        ("server: {drain_s: -1}", "1:19: server.drain_s: must be at least 0.0, got -1"),
        ("classes: {long: {queue_share: 2}}", "1:31: classes.long.queue_share: must be at most 1.0, got 2"),
        ("tail: {tiemouts: {}}", '1:8: tail.tiemouts: unknown key (did you mean "timeouts"?)'),
        ("lens: {q: 1}", "1:8: lens.q: unknown key (known: enabled, ring_records)"),
        (
            "server: {max_body_bytes: 32 Mib/s}",
            "1:26: server.max_body_bytes: must be a size such as 33554432 or 32MiB, got '32 Mib/s'",
        ),
        (
            "server: {trusted_proxies: [10.0.0.0/99]}",
            "1:28: server.trusted_proxies[0]: must be an address or a network such as 10.0.0.0/8, got '10.0.0.0/99'",
        ),
        (
            "server: {api_keys: [{name: a, sha256: abc}]}",
            "1:39: server.api_keys[0].sha256: must match ^[0-9a-fA-F]{64}$, got 'abc'",
        ),
    ],
)
def test_each_kind_of_fault_is_told_in_words_with_its_place(tmp_path: Path, yaml: str, problem: str) -> None:
    assert problems_of(tmp_path, yaml) == [f"tidegate.yaml:{problem}"]


@pytest.mark.parametrize(
    "url", ["", "x", "http://", "ftp://h", "http://h:0", "http://h:99999", "http://h?q", "http://h#f", "http://u:p@h"]
)
def test_a_url_that_cannot_be_asked_is_refused(tmp_path: Path, url: str) -> None:
    (problem,) = problems_of(tmp_path, f"upstreams: {{chat: {{replicas: ['{url}']}}}}")
    assert problem.startswith("tidegate.yaml:1:31: upstreams.chat.replicas[0].url: must ")


def test_only_what_is_missing_for_a_mended_fault_stays_untold(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "upstreams: {chat: {replicas: [{url: 3}]}}") == [
        "tidegate.yaml:1:37: upstreams.chat.replicas[0].url: must be text (put quotes around it), got 3"
    ]


keys = st.sampled_from([each.key.split(".")[-1].removesuffix("[]") for each in parameters(Settings)]) | st.text(
    max_size=5
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["${X}", "http://h"])
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)
sections = st.dictionaries(st.sampled_from(list(Settings.model_fields)) | st.text(max_size=5), trees, max_size=5)


def _load(data: bytes, env: dict[str, str]) -> Settings | list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tidegate.yaml"
        path.write_bytes(data)
        try:
            return load(path, {}, env, Path(folder))
        except ConfigError as error:
            return error.problems


def _yaml(values: Any) -> bytes:
    with tempfile.TemporaryFile() as file:
        YAML(typ="safe", pure=True).dump(values, file)
        file.seek(0)
        return file.read()


@example({"[key]": None})
@given(sections)
def test_any_tree_loads_or_tells_its_problems(values: dict[str, Any]) -> None:
    found = _load(_yaml(values), {"X": "1"})
    assert isinstance(found, Settings) or (all(": " in problem for problem in found) and found)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_load_or_tell_their_problems(data: bytes) -> None:
    found = _load(data, {})
    assert isinstance(found, Settings) or found


variables = st.dictionaries(
    st.lists(
        st.sampled_from([*(name.upper() for name in Settings.model_fields), "0", "X", "REPLICAS", "CHAT", ""]),
        min_size=1,
        max_size=4,
    ).map(lambda parts: "TIDEGATE__" + "__".join(parts)),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10),
    max_size=3,
)


@given(variables)
def test_any_environment_loads_or_tells_its_problems(env: dict[str, str]) -> None:
    found = _load(ENGINE.encode(), env)
    assert isinstance(found, Settings) or found


def test_what_explain_shows_loads_again(tmp_path: Path) -> None:
    first = settings_of(tmp_path, ENGINE)
    (tmp_path / "again.yaml").write_bytes(_yaml(plain(first)))
    assert plain(load(tmp_path / "again.yaml", {}, {}, tmp_path)) == plain(first)


def test_a_shape_knows_what_may_stand_below_it() -> None:
    root = Shape(Settings)
    assert root.at(("upstreams", "any", "replicas", 3, "url")) is not None
    assert root.at(("upstreams", "any", "replicas", "x")) is None
    assert root.at(("server", "port", "deeper")) is None
