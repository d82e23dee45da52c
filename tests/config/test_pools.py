"""Pools that several models share, from the file to the policies."""

from __future__ import annotations

from pathlib import Path

from tests.config.places import problems_of, settings_of
from tidegate.config import slot_plans
from tidegate.config.assemble import path_config
from tidegate.config.gates import gates_of
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig

UPSTREAMS = """\
upstreams:
  chat: {replicas: [{url: http://h:1, bytes_per_token: 10}, {url: http://h:2, bytes_per_token: 10}]}
  pictures: {replicas: [{url: http://h:3, name: eye, bytes_per_token: 30, kv_tokens: 4096}]}
  plain: {replicas: [http://h:4]}
"""


def pool(groups: str, keys: str = "kv_bytes: 1MB") -> str:
    return f"{UPSTREAMS}pools: {{card: {{{keys}, groups: {{{groups}}}}}}}\n"


def test_shares_become_bytes_and_replicas_find_their_group(tmp_path: Path) -> None:
    groups = "text: {members: [chat-1], floor: 0.3, cap: 0.5}, images: {members: [pictures], floor: 0.6, reserve: 0.5}"
    config = path_config(settings_of(tmp_path, pool(groups, "kv_bytes: 1MB, peak_s: 5")))
    assert config.groups == GroupsConfig(
        pools=(
            PoolConfig(
                name="card",
                budget_bytes=10**6,
                peak_s=5,
                groups=(
                    GroupConfig(name="card/text", floor_bytes=300_000, cap_bytes=500_000, reserve_bytes=30_000),
                    GroupConfig(name="card/images", floor_bytes=600_000, cap_bytes=10**6, reserve_bytes=300_000),
                ),
            ),
        )
    )
    assert {each.name: each.group for each in config.replicas} == {
        "chat-0": None,
        "chat-1": "card/text",
        "eye": "card/images",
        "plain-0": None,
    }


def test_a_replicas_own_group_goes_before_that_of_its_upstream(tmp_path: Path) -> None:
    groups = "text: {members: [chat], floor: 0.3}, spare: {members: [chat-1], floor: 0.1}"
    replicas = path_config(settings_of(tmp_path, pool(groups))).replicas
    assert [each.group for each in replicas[:2]] == ["card/text", "card/spare"]


def test_every_mistake_in_a_pool_is_told_at_once(tmp_path: Path) -> None:
    groups = (
        "text: {members: [chat, plain], floor: 0.6, cap: 0.5}, images: {members: [pictrues, chat, zzz], floor: 0.6}"
    )
    needs = "needs bytes_per_token, to tell how much of the pool a request takes"
    assert [problem.split(": ", 1)[1] for problem in problems_of(tmp_path, pool(groups))] == [
        "pools.card.groups: the floors sum to 1.2; a pool can guarantee no more than 1",
        f"pools.card.groups.text.members[1]: plain-0 {needs}",
        "pools.card.groups.text.cap: is below the floor (0.6)",
        "pools.card.groups.images.members[0]: there is no upstream or replica 'pictrues' (did you mean \"pictures\"?)",
        "pools.card.groups.images.members[1]: chat is in group card/text already",
        "pools.card.groups.images.members[2]: there is no upstream or replica 'zzz'",
    ]


def test_a_group_needs_members_and_a_share(tmp_path: Path) -> None:
    found = problems_of(tmp_path, pool("none: {members: [], floor: 2}, some: {members: [chat]}", "kv_bytes: 0"))
    assert [problem.split(": ", 1)[1] for problem in found] == [
        "pools.card.kv_bytes: must be at least 1, got 0",
        "pools.card.groups.none.members: must hold at least 1, got a list",
        "pools.card.groups.none.floor: must be at most 1.0, got 2",
        "pools.card.groups.some.floor: is required",
    ]


def test_without_slots_there_is_nothing_to_share(tmp_path: Path) -> None:
    text = pool("text: {members: [chat], floor: 1}") + "slots: {enabled: false}\n"
    (problem,) = problems_of(tmp_path, text)
    assert problem.endswith("pools.card: memory is no gate while slots.enabled is false")


def test_explain_says_when_the_group_is_what_binds(tmp_path: Path) -> None:
    groups = "text: {members: [chat], floor: 0.2}, images: {members: [pictures], floor: 0.5}"
    settings = settings_of(tmp_path, pool(groups))
    found = [gates_of(plan, settings, 1000, 24) for plan in slot_plans(settings)]
    assert [(each.group_floor, each.group) for each in found] == [(19, 92), (19, 92), (16, 31), (None, None)]
    assert found[2].binding() == "slots"
    assert found[0].words() == (
        "chat-0: the gate that binds is limit, for requests of 1000 + 24 tokens at once (adaptive limit at start 32, "
        "slot group 19 to 92); the limit may grow to 2048, then slot group binds"
    )
    small = [gates_of(plan, settings, 99_000, 2000) for plan in slot_plans(settings)]
    assert small[0].words() == "chat-0: requests of 99000 + 2000 tokens never fit here"
    assert small[0].plain()["group"] == 0
