from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.cli.load_play import command_line
from tidegate.cli.main import app
from tidegate.load import validity
from tidegate.load.records_file import read_records
from tidegate.load.result_file import SCHEMA
from tidegate.testing.faults import Fault
from tidegate.testing.upstream_process import UpstreamProcess


@pytest.fixture(scope="module")
def engine() -> Iterator[UpstreamProcess]:
    with UpstreamProcess(slots=64, pace_s=0.001, first_s=0.005, kind="openai", model="m") as process:
        yield process


@pytest.fixture(autouse=True)
def patient_with_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside each other: a generator that is late says nothing here."""
    monkeypatch.setattr(validity, "LEAST_LAG_BOUND_S", 60.0)
    monkeypatch.setattr(validity, "MOST_BUSY_SHARE", 100.0)


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        app(["load", *arguments])
    return int(end.value.code or 0)


def briefly(url: str, folder: Path) -> list[str]:
    """A second of the smallest plan."""
    return [f"{url}/v1", "--plan", "steady-load@40", "--time-scale", "0.001", "--out", str(folder)]


def test_a_run_leaves_a_page_a_result_and_a_record_of_every_request(
    engine: UpstreamProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(*briefly(engine.url, tmp_path / "run"), "--seed", "7", "--json") == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result.keys() == {re.split(r"[.\[]", field)[0] for field in SCHEMA}
    (phase,) = result["phases"]
    assert phase["all"]["outcomes"]["ok"] == phase["all"]["due"] > 10
    records = next((tmp_path / "run").glob("records.*"))
    samples = read_records(records)
    assert len(samples) == phase["all"]["due"]
    assert {sample.target for sample in samples} == {result["targets"][0]}
    page = (tmp_path / "run" / "report.html").read_text()
    assert "steady-load" in page
    assert json.loads((tmp_path / "run" / "result.json").read_text())["manifest"] == result["manifest"]


def test_a_missed_bar_is_the_exit_status_and_an_error_is_none_of_the_answers(
    engine: UpstreamProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bars = tmp_path / "bars.yaml"
    bars.write_text("bars:\n  - figure: error_rate\n    max: 10 %\n")
    run = [*briefly(engine.url, tmp_path / "run"), "--gates", str(bars), "--json"]
    assert ended(*run) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    engine.fail(Fault.ERROR_500)
    try:
        assert ended(*run) == 1
    finally:
        engine.heal()
    result = json.loads(capsys.readouterr().out)
    assert result["passed"] is False
    assert result["phases"][0]["all"]["outcomes"].get("ok", 0) == 0
    assert result["phases"][0]["all"]["e2e"] is None


def test_a_generator_that_was_late_has_measured_itself(
    engine: UpstreamProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "LEAST_LAG_BOUND_S", 0.0)
    monkeypatch.setattr(validity, "LAG_SHARE_OF_TTFT", 0.0)
    assert ended(*briefly(engine.url, tmp_path / "run")) == 3
    assert "INVALID" in capsys.readouterr().out


def test_two_targets_take_turns_and_are_compared(
    engine: UpstreamProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [f"a={engine.url}/v1", f"b={engine.url}/v1", *briefly(engine.url, tmp_path)[1:], "--turn-s", "0.5"]
    assert ended(*pair, "--time-scale", "0.002", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["targets"] == ["a", "b"]
    first, second = result["phases"]
    assert first["all"]["due"] == second["all"]["due"]
    assert {each["figure"] for each in result["compared"]["b"]} >= {"E2E P50"}
    assert result["score_card"]["rows"]


def test_more_and_more_users_until_something_breaks(
    engine: UpstreamProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.fail(Fault.ERROR_500)
    try:
        climb = [f"{engine.url}/v1", "--until-failure", "--step-s", "0.2", "--out", str(tmp_path), "--json"]
        assert ended(*climb) == 0
    finally:
        engine.heal()
    found = json.loads(capsys.readouterr().out)["break_point"]
    assert found["broke"]
    assert found["first_bad_users"] == 1
    assert "errors 100 %" in found["why"]


def test_steps_that_show_no_knee_are_no_success(
    engine: UpstreamProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["knee", f"{engine.url}/v1", "--users", "1,2", "--step-s", "0.2", "--out", str(tmp_path), "--json"]
    assert ended(*steps, "--max-output-tokens", "16") == 1
    result = json.loads(capsys.readouterr().out)
    (knee,) = result["knee"].values()
    assert not knee["is_found"]
    assert "2 steps with answers are too few" in knee["why"]
    assert [phase["users"] for phase in result["phases"]] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the service"),
        (["knee"], "name the service"),
        (["http://127.0.0.1:9/v1", "--gates", "acceptence"], 'did you mean "acceptance"'),
        (["http://127.0.0.1:9/v1"], "does the service run"),
        (["a=http://127.0.0.1:9/v1", "b=http://127.0.0.1:9/v1", "--until-failure"], "breaks at a load of its own"),
        (["knee", "http://127.0.0.1:9/v1", "--users", "1,x"], "expected numbers of users"),
        (["http://127.0.0.1:9/v1", "--against", "nowhere.json"], "nowhere.json"),
        (["http://127.0.0.1:9/v1", "--tenant-key", "gold"], "--tenant-key gold: must be TENANT=VARIABLE"),
        (["http://127.0.0.1:9/v1", "--tenant-key", "gold=NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_what_cannot_be_played_is_said_before_anything_is_sent(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(*arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_an_unknown_plan_is_answered_with_a_near_one(
    engine: UpstreamProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(f"{engine.url}/v1", "--plan", "three-phases") == 1
    assert 'did you mean "three-phase"' in capsys.readouterr().err


def test_the_plans_and_the_fields_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("plans") == 0
    listed = capsys.readouterr().out
    assert ended("plans", "--json") == 0
    assert all(f"{name} " in listed for name in json.loads(capsys.readouterr().out)["plans"])
    assert ended("--schema") == 0
    assert json.loads(capsys.readouterr().out)["fields"] == SCHEMA


def test_the_command_line_is_kept_without_what_headers_hold() -> None:
    typed = [
        "/bin/tidegate",
        "load",
        "http://x/v1",
        "--header",
        "authorization: Bearer s",
        "--header=x-a: s",
        "-p",
        "a b",
    ]
    assert command_line(typed) == ("tidegate load http://x/v1 --header 'authorization: ...' --header=... -p 'a b'")
