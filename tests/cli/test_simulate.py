from __future__ import annotations

import json

import pytest

from tidegate.cli.main import app
from tidegate.simulate.report import SCHEMA
from tidegate.simulate.scenarios import SCENARIOS


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        app(["simulate", *arguments])
    assert ended.value.code == 0
    return capsys.readouterr().out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        app(["simulate", *arguments])
    assert ended.value.code == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_json_of_one_run_is_one_object_with_the_fields_of_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "silence-then-200", "--policy", "native", "--seed", "3", "--json"))
    assert found.keys() == SCHEMA.keys()
    assert (found["scenario"], found["policy"], found["seed"], found["offered"]) == (
        "silence-then-200",
        "native",
        3,
        200,
    )


def test_several_runs_are_given_with_their_medians(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "silence-then-200", "--seeds", "2", "--json"))
    assert [(run["policy"], run["seed"]) for run in found["runs"]] == [
        ("native", 1),
        ("native", 2),
        ("tidegate", 1),
        ("tidegate", 2),
    ]
    rates = [run["errors"]["rate"] for run in found["runs"][:2]]
    assert found["medians"][0]["errors"]["rate"] == pytest.approx(sum(rates) / 2)
    assert found["medians"][0]["seeds"] == [1, 2]


def test_the_schema_defines_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads(output(capsys, "--schema"))["fields"]
    assert fields.keys() >= SCHEMA.keys()
    assert all(len(meaning) > 10 for meaning in fields.values())


def test_without_a_scenario_the_known_ones_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = output(capsys)
    assert all(name in listed for name in SCENARIOS)
    assert json.loads(output(capsys, "--json"))["scenarios"].keys() == SCENARIOS.keys()


def test_the_table_holds_a_column_per_policy_and_the_source_of_the_traffic(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_TRACES", raising=False)
    table = output(capsys, "azure-code")
    assert "native" in table
    assert "tidegate" in table
    assert "look-alike of azure-code" in table
    assert "P95 TTFT, full bar" in table


def test_mistakes_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean steady" in complaint(capsys, "stedy")
    assert "known: native, tidegate" in complaint(capsys, "steady", "--policy", "magic")
    assert "named twice" in complaint(capsys, "steady", "-p", "native", "-p", "native")
