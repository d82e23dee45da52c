from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import settings_of
from tidegate.config import slot_plans
from tidegate.config.gates import Gates, gates_of


def gates(folder: Path, keys: str, sizes: tuple[int, int] = (1000, 24), rest: str = "") -> Gates:
    yaml = f"upstreams: {{chat: {{replicas: [{{url: http://h:1, {keys}}}]}}}}\n{rest}"
    settings = settings_of(folder, yaml)
    return gates_of(next(iter(slot_plans(settings))), settings, *sizes)


@pytest.mark.parametrize(
    ("keys", "binds"),
    [
        ("kv_tokens: 25600", "slots"),
        ("kv_tokens: 256000, sequences: 8", "sequences"),
        ("kv_tokens: 256000", "limit"),
        ("name: x", "limit"),
    ],
)
def test_the_gate_that_lets_the_fewest_run_binds(tmp_path: Path, keys: str, binds: str) -> None:
    assert gates(tmp_path, keys).binding() == binds


def test_what_binds_is_told_in_words(tmp_path: Path) -> None:
    assert gates(tmp_path, "kv_tokens: 25600, sequences: 50").words() == (
        "chat-0: the gate that binds is slots, for requests of 1000 + 24 tokens at once "
        "(slots 25, sequences 50, adaptive limit at start 32)"
    )
    assert gates(tmp_path, "kv_tokens: 102400").words() == (
        "chat-0: the gate that binds is limit, for requests of 1000 + 24 tokens at once "
        "(slots 100, adaptive limit at start 32); the limit may grow to 2048, then slots binds"
    )


def test_a_request_that_never_fits_is_told(tmp_path: Path) -> None:
    assert gates(tmp_path, "context_tokens: 1000").words() == "chat-0: requests of 1000 + 24 tokens never fit here"
    assert gates(tmp_path, "kv_tokens: 512").fits is False


def test_nothing_binds_where_nothing_is_known(tmp_path: Path) -> None:
    open_gates = gates(tmp_path, "kv_tokens: 512", rest="slots: {enabled: false}\nlimits: {adaptive: {enabled: false}}")
    assert open_gates.binding() is None
    assert open_gates.words() == "chat-0: no gate binds before the engine has told its capacity"
    assert open_gates.plain()["binds"] is None


def test_the_knee_of_a_model_is_a_gate(tmp_path: Path) -> None:
    yaml = "upstreams: {chat: {replicas: [{url: http://h:1, kv_tokens: 102400}], limits: {knee: 20}}}\n"
    settings = settings_of(tmp_path, yaml)
    found = gates_of(next(iter(slot_plans(settings))), settings, 1000, 24)
    assert found.binding() == "model concurrency"
    assert found.words().endswith("(slots 100, adaptive limit at start 32, model concurrency 16)")
    assert found.plain()["model"] == 16
