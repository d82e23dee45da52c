from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tidegate.errors import ConfigError
from tidegate.simulate.calibrated_engine import EngineFile, Sent, read_engine_file, write_engine_file
from tidegate.simulate.scenarios import find_scenario

FILE = EngineFile(
    step_ms={"fixed": 5.0, "prefill": 1.0, "sequence": 2.0, "context": 0.001, "quadratic": 0.0},
    quadratic_from_tokens=0,
    max_sequences=4,
    chunk_tokens=64,
    kv_tokens=8192,
    context_tokens=2048,
    overhead_ms=3.0,
    source="records.parquet",
    traffic=[Sent(4.0, 300, 20), Sent(0.0, 40, 10, 128, "chat", "a")],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "engine.json"
    write_engine_file(written, FILE)
    return written


def test_a_file_is_read_as_it_was_written(path: Path) -> None:
    assert read_engine_file(path) == FILE
    engine = read_engine_file(path).engine
    assert (engine.overhead_s, engine.config.max_sequences, engine.config.step.prefill_ps) == (0.003, 4, 10**9)


def test_requests_come_in_order_with_the_bounds_and_tenants_of_the_records(path: Path) -> None:
    scenario = find_scenario(f"own-engine@{path}").build(1)
    assert [(each.at, each.prompt_tokens, each.max_tokens, each.tenant) for each in scenario.demands] == [
        (0.0, 40, 128, "a"),
        (4.0, 300, 256, "default"),
    ]
    assert (len(scenario.engines), scenario.name) == (1, f"own-engine@{path}")


def test_they_come_as_much_faster_to_as_many_engines_as_is_asked(path: Path) -> None:
    scenario = find_scenario(f"own-engine@2x3/{path}").build(1)
    assert ([each.at for each in scenario.demands], len(scenario.engines)) == ([0.0, 2.0], 3)
    assert len(find_scenario(f"own-engine@0.5/{path}").build(1).engines) == 1


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("", "own-engine@FILE: name the file"),
        ("0/{path}", "speed and engines must be above 0"),
        ("1x0/{path}", "speed and engines must be above 0"),
        ("{path}.none", "No such file"),
    ],
)
def test_arguments_that_name_nothing_are_refused(path: Path, argument: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        find_scenario(f"own-engine@{argument.format(path=path)}")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "not a file of `tidegate simulate calibrate --out`"),
        (msgspec.json.encode(msgspec.structs.replace(FILE, kind="cup")), "kind 'cup': expected"),
        (msgspec.json.encode(msgspec.structs.replace(FILE, traffic=[])), "no traffic in it"),
    ],
)
def test_files_that_are_something_else_are_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "cup.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        find_scenario(f"own-engine@{path}")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        write_engine_file(tmp_path / "none" / "engine.json", FILE)
