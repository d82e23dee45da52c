"""Classes that are named and not there, and floors that are too much together."""

from __future__ import annotations

from pathlib import Path

from tests.config.places import problems_of, settings_of
from tidegate.config.assemble import path_config

CHAT = "upstreams: {chat: {replicas: [http://h:1]}}"


def told(folder: Path, yaml: str) -> list[str]:
    """Problems without their places."""
    return [line.split(" ", 1)[1] for line in problems_of(folder, yaml)]


def test_every_class_that_is_named_must_be_there(tmp_path: Path) -> None:
    yaml = """\
upstreams: {chat: {replicas: [http://h:1], limits: {max_wait_s: {lnog: 3, long: 4}}}}
shaping:
  rules:
    - {service_class: batsh, tenant: nightly}
    - {service_class: batch, model: chet}
    - {service_class: vip, model: chat}
classes: {vip: {weight: 9}}
"""
    assert told(tmp_path, yaml) == [
        "upstreams.chat.limits.max_wait_s.lnog: there is no class 'lnog' (did you mean \"long\"?)",
        "shaping.rules[0].service_class: there is no class 'batsh' (did you mean \"batch\"?)",
        "shaping.rules[1].model: there is no upstream 'chet' (did you mean \"chat\"?)",
    ]


def test_floors_leave_room_for_each_other(tmp_path: Path) -> None:
    yaml = f"{CHAT}\nclasses: {{interactive: {{floor: 0.7}}, long: {{floor: 0.4}}}}\n"
    assert told(tmp_path, yaml) == ["classes: the floors of interactive, long are more than 1 together"]


def test_mistakes_in_rules_and_shares_are_told_where_they_stand(tmp_path: Path) -> None:
    yaml = f"""\
{CHAT}
shaping:
  classify: sometimes
  rules:
    - {{service_class: batch}}
    - {{service_class: batch, header: "bad name"}}
classes: {{long: {{max_share: 0}}, batch: {{floor: 0.9, max_share: 0.5}}}}
"""
    found = told(tmp_path, yaml)
    assert [line.partition(": ")[0] for line in found] == [
        "shaping.classify",
        "shaping.rules[0]",
        "shaping.rules[1].header",
        "classes.long.max_share",
        "classes.batch",
    ]
    assert "a class rule needs a condition" in found[1]


def test_a_rule_reaches_the_policies_with_its_header(tmp_path: Path) -> None:
    yaml = f"""\
{CHAT}
shaping:
  long_counts: total
  classify: on_burst
  rules:
    - {{service_class: batch, header: X-Team, header_value: night, min_total_tokens: 5}}
"""
    classes = path_config(settings_of(tmp_path, yaml)).classes
    assert (classes.long_counts, classes.classify, classes.headers) == ("total", "on_burst", ("x-team",))
    assert classes.rules[0].min_total_tokens == 5
