from __future__ import annotations

from pathlib import Path

from tests.config.places import settings_of
from tidegate.config import timeout_tree

YAML = """\
server: {head_s: 30, connect_s: 5, heartbeat_s: 15, keep_alive_s: 75, drain_s: 30}
shaping: {margin: {least: 0.7, most: 0.85}}
classes: {interactive: {max_wait_s: 10}, long: {max_wait_s: 3}, batch: {max_wait_s: 60}, other: {max_wait_s: 10}}
tail:
  timeouts:
    multiplier: 3
    first_byte: {floor_s: 5, default_s: 120, ceiling_s: 300}
    gap: {floor_s: 10, default_s: 60, ceiling_s: 120}
    total: {floor_s: 30, default_s: 900, ceiling_s: 3600}
"""


def test_every_timeout_stands_in_one_tree(tmp_path: Path) -> None:
    told = """\
client deadline: what the client says (x-tidegate-deadline-ms, x-stainless-read-timeout); without it none
├─ receive: 30 s without a byte of the request  [server.head_s]
├─ queue: refused at once where the predicted wait passes 0.7–0.85 of the deadline
│  ├─ interactive: 10 s  [classes.interactive.max_wait_s]
│  ├─ long: 3 s  [classes.long.max_wait_s]
│  ├─ batch: 60 s  [classes.batch.max_wait_s]
│  └─ other: 10 s  [classes.other.max_wait_s]
├─ attempt: 3 × P90, from 30 to 3600 s; 900 s until that is known  [tail.timeouts.total]
│  ├─ connect: 5 s  [server.connect_s]
│  ├─ first byte: 3 × P90, from 5 to 300 s; 120 s until that is known  [tail.timeouts.first_byte]
│  ├─ gap between two reads: 3 × P90, from 10 to 120 s; 60 s until that is known  [tail.timeouts.gap]
│  └─ abort: slots stay held until the engine confirms, or for abort_grace_s  [upstreams.<name>.replicas[]]
└─ connection: outlives its requests
   ├─ heartbeat: every 15 s until the first token  [server.heartbeat_s]
   ├─ keep-alive: 75 s idle  [server.keep_alive_s]
   └─ drain: 30 s for running requests after SIGTERM  [server.drain_s]
"""
    tree = timeout_tree(settings_of(tmp_path, YAML))
    assert list(tree.lines()) == told.splitlines()


def test_the_plain_tree_says_the_most_each_can_be(tmp_path: Path) -> None:
    plain = timeout_tree(settings_of(tmp_path, YAML)).plain()
    by_name = {each["name"]: each["longest_s"] for each in plain["children"]}
    assert by_name == {"receive": None, "queue": 60, "attempt": 3600, "connection": None}


def test_switched_off_sections_leave_fixed_times(tmp_path: Path) -> None:
    yaml = f"mode: dev\n{YAML.replace('heartbeat_s: 15', 'heartbeat_s: 0')}"
    lines = "\n".join(timeout_tree(settings_of(tmp_path, yaml)).lines())
    assert "queue: first come, first served" in lines
    assert "batch" not in lines
    assert "attempt: 900 s  [" in lines
    assert "heartbeat: off" in lines


def test_a_child_that_outlasts_its_parent_is_told(tmp_path: Path) -> None:
    yaml = "tail: {timeouts: {first_byte: {ceiling_s: 4000}}}\nserver: {heartbeat_s: 80}"
    assert settings_of(tmp_path, yaml).warnings == (
        "tail.timeouts.first_byte: up to 4000 s, but tail.timeouts.total ends an attempt after at most 3600 s",
        "server.heartbeat_s is not below server.keep_alive_s: proxies in between may cut a waiting stream",
    )


def test_the_objective_of_a_class_stands_beside_its_wait_while_shaping_is_on(tmp_path: Path) -> None:
    yaml = YAML.replace("interactive: {max_wait_s: 10}", "interactive: {max_wait_s: 10, ttft_slo_s: 2}")
    told = "interactive: 10 s; a stream only while its first byte can come within 2 s  [classes.interactive.max_wait_s]"
    assert told in "\n".join(timeout_tree(settings_of(tmp_path, yaml)).lines())
    assert "within 2 s" not in "\n".join(timeout_tree(settings_of(tmp_path, f"mode: dev\n{yaml}")).lines())


def test_a_models_own_waits_stand_beside_those_of_the_classes(tmp_path: Path) -> None:
    yaml = "upstreams: {slow: {replicas: [http://h:1], limits: {max_wait_s: {interactive: 90, batch: 5}}}}\n"
    (queue,) = [each for each in timeout_tree(settings_of(tmp_path, yaml)).children if each.name == "queue"]
    assert queue.longest_s == 90
    own = [(each.name, each.longest_s, each.key) for each in queue.children[-2:]]
    assert own == [
        ("interactive, of model slow", 90, "upstreams.slow.limits.max_wait_s.interactive"),
        ("batch, of model slow", 5, "upstreams.slow.limits.max_wait_s.batch"),
    ]
    (queue,) = [
        each
        for each in timeout_tree(settings_of(tmp_path, f"{yaml}shaping: {{enabled: false}}\n")).children
        if each.name == "queue"
    ]
    assert [each.name for each in queue.children] == ["interactive", "interactive, of model slow"]
