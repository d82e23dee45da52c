from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import run
from tidegate.cli.build import build
from tidegate.cli.explain import FIELDS

YAML = """\
server: {port: 9000, host: "${HOST}"}
upstreams:
  chat:
    replicas:
      - {url: http://127.0.0.1:9, kv_tokens: 25600, sequences: 256}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOST", "localhost")
    monkeypatch.setenv("TIDEGATE__SERVER__DRAIN_S", "5")
    monkeypatch.setenv("VOLC_PRIORITY_THRESHOLD", "512")
    (tmp_path / "tidegate.yaml").write_text(YAML)
    return tmp_path


def lines_with(text: str, key: str) -> list[list[str]]:
    return [line.split(maxsplit=2) for line in text.splitlines() if line.split(maxsplit=1)[:1] == [key]]


def test_every_value_stands_beside_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "explain", "--set", "server.admin_port=9001")
    assert ended.status == 0
    told = {key: lines_with(ended.out, key)[0][1:] for key in (
        "server.port", "server.host", "server.drain_s", "server.admin_port", "shaping.long_threshold_tokens", "mode",
    )}  # fmt: skip
    assert told == {
        "server.port": ["9000", "tidegate.yaml:1:16"],
        "server.host": ["${HOST}", "tidegate.yaml:1:28"],
        "server.drain_s": ["5.0", "environment TIDEGATE__SERVER__DRAIN_S"],
        "server.admin_port": ["9001", "--admin-port"],
        "shaping.long_threshold_tokens": ["512", "environment VOLC_PRIORITY_THRESHOLD"],
        "mode": ["production", "default"],
    }


def test_the_timeout_tree_the_slots_and_the_gate_that_binds_follow(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "explain", "--prompt-tokens", "1000", "--output-tokens", "24")
    assert "  client deadline: what the client says" in ended.out
    assert "     └─ drain: 5 s for running requests after SIGTERM  [server.drain_s]" in ended.out
    assert "chat-0: 25600 tokens ÷ 256 = 100 slots; recommended sequences 80 (80 %), given 100" in ended.out
    assert "chat-0: the gate that binds is slots, for requests of 1000 + 24 tokens at once" in ended.out
    assert ended.err.startswith("WARN 256 sequences asked of chat-0")


def test_it_says_which_build_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"Configuration (tidegate.yaml), {build()} build\n" in run(capsys, "explain").out


def test_slots_that_are_off_are_told_so(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert "chat-0: slots are off" in run(capsys, "explain", "--set", "slots.enabled=false").out
    (folder / "tidegate.yaml").write_text("")
    assert "No upstream: nothing to reserve memory on." in run(capsys, "explain").out


def test_json_is_one_object_with_the_fields_of_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(capsys, "explain", "--json").out)
    fields = json.loads(run(capsys, "explain", "--schema").out)["fields"]
    assert fields == FIELDS
    assert {name.split("[")[0].split(".")[0] for name in fields} == told.keys()
    (replica,) = told["replicas"]
    assert {name.removeprefix("replicas[].") for name in fields if name.startswith("replicas[].")} <= replica.keys()
    assert told["build"] == build()
    assert (replica["slots"], replica["recommended_sequences"], replica["gates"]["binds"]) == (100, 80, "slots")
    host = next(each for each in told["values"] if each["key"] == "server.host")
    assert host == {"key": "server.host", "value": "${HOST}", "origin": "file", "place": "tidegate.yaml:1:28"}
    assert "localhost" not in json.dumps(told)


def test_pools_say_who_holds_what_and_where_a_loan_is_of_no_use(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tidegate.yaml").write_text(
        "upstreams:\n"
        "  chat: {replicas: [{url: http://h:1, kv_tokens: 4096, bytes_per_token: 65536}]}\n"
        "  eye: {replicas: [{url: http://h:2, kv_tokens: 32768, bytes_per_token: 65536}]}\n"
        "  far: {replicas: [{url: http://h:3, bytes_per_token: 65536}]}\n"
        "pools: {card: {kv_bytes: 2GiB, groups: {text: {members: [chat], floor: 0.5}, "
        "images: {members: [eye], floor: 0.25}, far: {members: [far], floor: 0.125, cap: 0.25}}}}\n"
    )
    text, own = "guaranteed 1.0 GiB, at most 2.0 GiB, never lent 0.1 GiB", "; its engines' own memory: "
    assert run(capsys, "explain").out.partition("Memory that models share\n\n")[2].splitlines() == [
        "  card: 2.0 GiB, of which 1.8 GiB guaranteed",
        f"  card/text (chat-0): {text}{own}0.2 GiB, so a loan is of no use to it",
        f"  card/images (eye-0): guaranteed 0.5 GiB, at most 2.0 GiB, never lent 0.0 GiB{own}2.0 GiB",
        f"  card/far (far-0): guaranteed 0.2 GiB, at most 0.5 GiB, never lent 0.0 GiB{own}not known yet",
    ]
    (pool,) = json.loads(run(capsys, "explain", "--json").out)["pools"]
    assert (pool["pool"], pool["budget_bytes"], pool["groups"][0]["own_pool_bytes"]) == ("card", 2**31, 2**28)
    assert [group["own_pool_bytes"] for group in pool["groups"]] == [2**28, 2**31, None]


def test_problems_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "explain", "--set", "server.port=x", "--json")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == "--port: server.port: must be a whole number, got 'x'\n"


class TestKey:
    def test_one_key_is_told_in_full(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "explain", "shaping.long_threshold_tokens").out.splitlines() == [
            "shaping.long_threshold_tokens",
            "  Prompts above it are of class `long` (alias: VOLC_PRIORITY_THRESHOLD, SPEC S0-31).",
            "  type     whole number",
            "  range    ≥ 1",
            "  default  1024",
            "  here     512 (environment VOLC_PRIORITY_THRESHOLD)",
            "  set by   --set shaping.long_threshold_tokens=VALUE",
            "  set by   TIDEGATE__SHAPING__LONG_THRESHOLD_TOKENS",
            "  set by   VOLC_PRIORITY_THRESHOLD",
            "  set by   the YAML",
            "  rows     S0-31",
        ]

    def test_an_alias_is_a_name_for_its_key(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = json.loads(run(capsys, "explain", "VOLC_BUFFER_QUEUE_SIZE", "--json").out)["parameters"]
        assert [(each["key"], each["default"], each["required"]) for each in told] == [
            ("shaping.queue.max_requests", 2000, False)
        ]

    def test_a_key_of_a_chosen_name_is_told_with_its_value(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = run(capsys, "explain", "upstreams.chat.replicas[0].sequences").out
        assert told.startswith("upstreams.<name>.replicas[].sequences\n")
        assert "  here     256 (tidegate.yaml:5:64)" in told
        assert "TIDEGATE__UPSTREAMS__<NAME>__REPLICAS__0__SEQUENCES" in told
        other = run(capsys, "explain", "upstreams.chat.replicas[7].url").out
        assert "  here" not in other
        assert "  default  required" in other

    def test_a_section_lists_its_keys(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = run(capsys, "explain", "lens").out.splitlines()
        assert [line.split()[0] for line in told] == ["lens.enabled", "lens.ring_records"]

    def test_a_key_there_is_none_of_is_answered_with_the_nearest(self, capsys: pytest.CaptureFixture[str]) -> None:
        ended = run(capsys, "explain", "server.prot")
        assert (ended.status, ended.out) == (1, "")
        assert ended.err.startswith('server.prot: no such key (did you mean "server.port"?)')

    def test_it_is_told_of_a_faulty_configuration_too(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        (folder / "tidegate.yaml").write_text("mode: staging")
        assert "  here" not in run(capsys, "explain", "mode").out
