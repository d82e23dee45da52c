"""Sections of engines that Tidegate starts: every mistake at once, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config import Settings, load
from tidegate.config.origin import Kind
from tidegate.config.parameters import Shape, parameters
from tidegate.config.started_engines import Embedded, Vllm
from tidegate.errors import ConfigError

SOUND = "kind: vllm, model: qwen/qwen3, context_tokens: 1024, kv_blocks: 80, block_tokens: 32"


def loaded(folder: Path, engine: str, env: dict[str, str] | None = None) -> Settings:
    file = folder / "tidegate.yaml"
    file.write_text(f"upstreams:\n  m:\n    engine: {{{engine}}}\n")
    return load(file, {}, env or {}, folder)


def problems(folder: Path, engine: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, engine)
    return [line.partition("upstreams.m.")[2] for line in caught.value.problems]


def test_a_section_is_of_the_kind_that_it_names_or_else_embedded(tmp_path: Path) -> None:
    vllm = loaded(tmp_path, SOUND).upstreams["m"].engine
    assert isinstance(vllm, Vllm)
    assert (vllm.reservation.rule, vllm.memory_share, vllm.python) == ("peak", 0.86, None)
    assert isinstance(loaded(tmp_path, "threads: 2").upstreams["m"].engine, Embedded)


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("kind: vlm", ["engine: kind must be 'embedded' or 'vllm', got 'vlm' (did you mean \"vllm\"?)"]),
        ("kind: [a]", ["engine: kind must be 'embedded' or 'vllm', got a list"]),
        (
            "kind: vllm, modle: x, context_tokens: many, kv_bytes: 1GiB, reservation: {rule: of}",
            [
                "engine.model: is required",
                'engine.modle: unknown key (did you mean "model"?)',
                "engine.context_tokens: must be a whole number, got 'many'",
                "engine.reservation.rule: must be 'peak', 'worst_case' or 'off', got 'of' (did you mean \"off\"?)",
            ],
        ),
        ("threads: 0, model: x", ["engine.threads: must be at least 1, got 0", "engine.model: unknown key"]),
        (
            "kind: vllm, model: ./nowhere, python: /nowhere/python, context_tokens: 1024",
            [
                "engine: give the KV pool, as kv_bytes (of each GPU) or as kv_blocks",
                "engine.model: there is no checkpoint in ./nowhere (no config.json)",
                "engine.python: there is no interpreter /nowhere/python",
            ],
        ),
        (f"{SOUND}, kv_bytes: 1GiB", ["engine.kv_blocks: kv_bytes is given too; keep one"]),
        ("kind: vllm, model: a/b, context_tokens: 9, kv_blocks: 8", ["engine.kv_blocks: needs block_tokens"]),
        (
            "kind: vllm, model: a/b, context_tokens: 9999, kv_blocks: 8, block_tokens: 32",
            ["engine.kv_blocks: 8 blocks hold 256 tokens, less than one context of 9999"],
        ),
        (
            f"{SOUND}, tensor_parallel: 2, devices: [GPU-1]",
            ["engine.devices: names 1 for tensor_parallel × pipeline_parallel = 2"],
        ),
        (
            f"{SOUND}, sequences: 8, queued_requests: 4",
            ["engine.queued_requests: 4 running and waiting requests are fewer than 8 sequences"],
        ),
        (f"{SOUND}, device: cpu, can_sleep: true", ["engine.can_sleep: vLLM has no sleep mode on a CPU"]),
        (
            f"{SOUND}, extra: [--enforce-eager, --host=0.0.0.0]",
            ["engine.extra[1]: --host is decided elsewhere (always loopback)"],
        ),
    ],
)
def test_every_mistake_is_told_at_once(tmp_path: Path, engine: str, told: list[str]) -> None:
    found = problems(tmp_path, engine)
    assert len(found) == len(told), found
    for line in told:
        assert any(each.startswith(line) for each in found), (line, found)


def test_a_prefix_caching_variable_reaches_either_kind(tmp_path: Path) -> None:
    for engine in (SOUND, "threads: 2"):
        settings = loaded(tmp_path, engine, {"VLLM_ENABLE_PREFIX_CACHING": "false"})
        started = settings.upstreams["m"].engine
        assert started is not None
        assert not started.prefix_caching
        assert settings.origin(("upstreams", "m", "engine", "prefix_caching")).kind is Kind.ALIAS


def test_a_variable_sets_a_key_that_only_one_kind_has(tmp_path: Path) -> None:
    env = {"TIDEGATE__UPSTREAMS__M__ENGINE__BATCH_TOKENS": "512", "TIDEGATE__UPSTREAMS__M__ENGINE__MODEL": "7"}
    engine = loaded(tmp_path, SOUND, env).upstreams["m"].engine
    assert isinstance(engine, Vllm)
    assert (engine.batch_tokens, engine.model) == (512, "7")


def test_the_index_tells_the_keys_of_both_kinds_apart() -> None:
    of_sequences = [each for each in parameters(Settings) if each.key == "upstreams.<name>.engine.sequences"]
    assert [(each.of_kind, each.default) for each in of_sequences] == [("embedded", 4), ("vllm", None)]
    (whole,) = [each for each in parameters(Settings) if each.key == "upstreams.<name>.engine"]
    assert whole.type == "embedded engine or vllm engine"


def test_a_shape_of_kinds_knows_paths_with_and_without_their_names() -> None:
    engine = Shape(Settings).at(("upstreams", "m", "engine"))
    assert engine is not None
    assert engine.keys()[:3] == ("kind", "model_path", "sequences")
    assert engine.child("nothing") is None
    assert engine.child("cpus") is not None
    assert engine.at(("vllm", "reservation", "rule")) is not None
    assert Shape(Settings).written(("upstreams", "vllm", "engine", "vllm", "model")) == (
        "upstreams",
        "vllm",
        "engine",
        "model",
    )
