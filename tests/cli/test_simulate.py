from __future__ import annotations

import json
from pathlib import Path

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


def test_compare_prints_a_row_per_policy_and_bars_and_names_the_cap_that_it_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plot = tmp_path / "plot.html"
    arguments = ("--policies", "native,cap:sweep,bound", "--seeds", "1", "--plot", str(plot))
    table = output(capsys, "compare", "silence-then-200", *arguments)
    assert "cap:sweep found cap:" in table
    assert "in SLO, of requests: silence-then-200" in table
    assert f"pictures: {plot}" in table.replace("\n", "")
    assert "<svg" in plot.read_text(encoding="utf-8")


def test_compare_as_json_is_one_object_with_the_fields_of_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "compare", "video-12@1,2", "-p", "native,bound", "--seeds", "1", "--json"))
    schema = json.loads(output(capsys, "compare", "--schema"))["fields"]
    assert {name.removesuffix("[]") for name in schema} == found.keys()
    assert [(row["scenario"], row["policy"], row["load"]) for row in found["rows"]] == [
        ("video-12@1", "native", 1.0),
        ("video-12@1", "bound", 1.0),
        ("video-12@2", "native", 2.0),
        ("video-12@2", "bound", 2.0),
    ]
    assert found["rows"][0]["figures"]["goodput_requests"] == 1.0
    assert all(name in schema["rows[]"] for name in found["rows"][0]["figures"] if name != "seeds")


def test_mistakes_in_a_comparison_are_told_before_anything_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name a scenario" in complaint(capsys, "compare")
    assert "each policy once" in complaint(capsys, "compare", "steady", "-p", "native,native")
    assert "ends in .html or .svg" in complaint(capsys, "compare", "steady", "--plot", "plot.png")


def test_run_is_what_simulate_means_and_a_sweep_names_its_cap(capsys: pytest.CaptureFixture[str]) -> None:
    named = json.loads(output(capsys, "run", "silence-then-200", "-p", "native", "--json"))
    short = json.loads(output(capsys, "silence-then-200", "-p", "native", "--json"))
    assert named | {"wall_s": 0} == short | {"wall_s": 0}
    assert "cap:sweep found cap:" in output(capsys, "silence-then-200", "-p", "cap:sweep")
    listed = output(capsys, "--help")
    assert "compare" in listed
    assert "run" in listed


def test_tenants_are_shown_where_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert "worst gap of a tenant" in output(capsys, "video-12@2", "-p", "native")


def test_several_loads_are_put_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    table = output(capsys, "compare", "video-12@1,2", "-p", "native,bound", "--seeds", "1")
    assert "video-12@1 " in table
    assert "video-12@2 " in table
    assert sum(line.split()[:1] == ["native"] for line in table.splitlines()) == 2 * (2 + 2) + 1 + 2


def test_what_came_in_time_and_the_worst_seed_are_shown_where_they_say_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = output(capsys, "compare", "fallback", "-p", "native", "--seeds", "2")
    assert "in time" in table
    assert "worst errors" in table
    plain = output(capsys, "compare", "video-12@1", "-p", "native", "--seeds", "1")
    assert "in time" not in plain
    assert "worst" not in plain
    assert "answers within 1.5 s" in output(capsys, "fallback", "-p", "native")
    assert "chains within 2 s" in output(capsys, "agent-chain", "-p", "native")
    assert "E2E p99 by the calm mean" in output(capsys, "silence-then-200", "-p", "native")


def test_a_lesser_answer_is_shown_with_the_rung_that_gave_it(capsys: pytest.CaptureFixture[str]) -> None:
    table = output(capsys, "silence-then-200@light", "-p", "tidegate:ladder")
    assert "by which rung" in table
    assert "light_model" in table
    assert "of burst" in output(capsys, "compare", "silence-then-200@light", "-p", "tidegate:ladder", "--seeds", "1")
