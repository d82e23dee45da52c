"""Drill files: what may be broken, and every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import ConfigError
from tidegate.load.drills.allowed_hosts import host_of, why_not_allowed
from tidegate.load.drills.drill_file import read_drill_file

FAULTS = frozenset({"node-lost", "restart"})
RIGHT = """
name: staging
url: https://gate.example:8443/v1
model: chat
admin_url: http://10.0.0.5:8001
allow: [gate.example, 10.0.0.5]
replicas:
  - name: a
    url: http://10.0.0.5:8000
    faults:
      node-lost: {break: "kill-a", restore: "start-a", status: "is-up a"}
  - name: b
blast_radius: {most_replicas: 1, most_error_share: 0.1}
"""
WRONG = """
url: https://elsewhere.example/v1
admin_url: nonsense
allow: [gate.example]
api_key_env: NOT_SET
rate_per_s: 0
replicas:
  - name: a
    faults:
      node-lst: {break: "kill-a", restore: "start-a"}
  - name: a
    speed: 3
"""


def read(folder: Path, text: str) -> list[str]:
    """What is wrong with it."""
    path = folder / "drill.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_drill_file(path, FAULTS, {})
    return [line.removeprefix(str(path)) for line in raised.value.problems]


def test_a_right_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "drill.yaml"
    path.write_text(RIGHT)
    section = read_drill_file(path, FAULTS, {})
    assert section.replicas[0].faults["node-lost"].break_it == "kill-a"
    assert section.blast_radius.most_error_share == 0.1
    assert section.peak_per_s is None


def test_every_mistake_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    told = read(tmp_path, WRONG)
    for expected in (
        ":2:6: url: elsewhere.example is not on the allow-list",
        ":3:12: admin_url: must be an http:// or https:// URL with a host, got 'nonsense'",
        ":5:14: api_key_env: the variable NOT_SET is not set",
        ":6:13: rate_per_s: must be more than 0",
        ':10:7: replicas[0].faults.node-lst: no drill makes this fault (did you mean "node-lost"?)',
        "two replicas are called 'a'",
        "speed: unknown key",
        "model: ",
        "status",
    ):
        assert any(expected in line for line in told), (expected, told)


def test_the_allow_list_is_checked_though_something_else_is_wrong(tmp_path: Path) -> None:
    told = read(tmp_path, "url: http://prod.example/v1\nallow: nobody\n")
    assert any("prod.example is not on the allow-list" in line for line in told)


def test_a_file_that_is_not_there_or_no_yaml_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_drill_file(tmp_path / "none.yaml", FAULTS, {})
    assert "not valid YAML" in read(tmp_path, "url: [")[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://localhost/v1"])
def test_loopback_has_to_be_written_out_as_every_other_host(url: str) -> None:
    assert "is not on the allow-list" in why_not_allowed(url, ["gate.example"])
    assert not why_not_allowed(url, [host_of(url)])


def test_hosts_are_compared_whole_and_in_any_case() -> None:
    assert not why_not_allowed("http://Gate.Example/v1", ["gate.EXAMPLE"])
    assert why_not_allowed("http://gate.example.evil/v1", ["gate.example"])
    assert not why_not_allowed("http://[::1]:8000/v1", ["[::1]"])
    assert why_not_allowed("http://[::1", ["[::1]"])
    assert why_not_allowed("ftp://gate.example", ["gate.example"])


def test_the_example_is_right() -> None:
    example = Path(__file__).resolve().parents[3] / "examples" / "drill.yaml"
    env = {"STAGING_KEY": "k", "STAGING_ADMIN_TOKEN": "t"}
    section = read_drill_file(example, FAULTS | {"freeze"}, env)
    assert [replica.name for replica in section.replicas] == ["chat-0", "chat-1", "chat-2"]
