"""``tidegate drill`` without anything being broken."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.commands import run
from tests.load.drills.made_findings import drill, findings
from tidegate.cli import drill as command
from tidegate.cli.drill_table import remarks
from tidegate.load.drills.catalogue import DRILLS
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_folder import DrillFolder
from tidegate.load.drills.drill_results import DrillResults
from tidegate.load.drills.drill_session import DrillSession, SessionOptions
from tidegate.load.verdict import Verdict

GIVEN = """
name: staging
url: http://127.0.0.1:9/v1
model: m
allow: [127.0.0.1]
rate_per_s: 3
replicas: [{name: a}, {name: b}]
"""


def kept(folder: Path, **changes: object) -> DrillResults:
    results = DrillResults(
        began="2026-12-01T03:00:00+00:00", command="c", deployment="own", seed=1, is_short=True, rate_per_s=1.0
    )
    for name, value in changes.items():
        setattr(results, name, value)
    with DrillFolder(folder).locked():
        DrillFolder(folder).keep(results)
    return results


def test_the_list_says_what_each_drill_asks_breaks_and_demands(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "drill", "list")
    assert ended.status == 0
    for name, each in DRILLS.items():
        assert f"{name}  {each.question}" in ended.out
        assert each.bars[0].text in ended.out


def test_a_name_that_there_is_not_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ended = run(capsys, "drill", "node-lots", "--out", str(tmp_path))
    assert ended.status == 2
    assert 'did you mean "node-lost"?' in ended.err


def test_several_drills_are_named_with_commas_and_each_name_is_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert [each.name for each in command.drills_of("migrate, node-lost")] == ["migrate", "node-lost"]
    assert [each.name for each in command.drills_of("all")] == [*DRILLS]
    ended = run(capsys, "drill", "node-lost,migrat", "--out", str(tmp_path))
    assert ended.status == 2
    assert 'did you mean "migrate"?' in ended.err


def test_a_wrong_drill_file_ends_with_every_mistake(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "drill.yaml"
    path.write_text(GIVEN.replace("allow: [127.0.0.1]", "allow: [gate.example]").replace("rate_per_s: 3", "rate: 3"))
    ended = run(capsys, "drill", "all", "--deployment", str(path), "--out", str(tmp_path))
    assert ended.status == 1
    assert "is not on the allow-list" in ended.err
    assert "rate: unknown key" in ended.err


def test_drills_that_a_given_deployment_can_not_play_are_skipped_and_no_pass(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "drill.yaml"
    path.write_text(GIVEN)
    ended = run(capsys, "drill", "all", "--deployment", str(path), "--out", str(tmp_path / "kept"), "--json")
    assert ended.status == 1
    told = json.loads(ended.out)
    assert [each["drill"] for each in told["findings"]] == [*DRILLS]
    assert all(each["passed"] is None and each["skipped"] for each in told["findings"])
    assert (told["deployment"], told["rate_per_s"]) == ("staging", 3.0)
    assert DrillFolder(tmp_path / "kept").last().deployment == "staging"


def test_the_last_results_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    met = Verdict(name="lost", row="S1-65", bar="lost <= 0", measured="0", passed=True)
    kept(tmp_path, findings=[findings(verdicts=[met]), findings(drill="oom", skipped="no control groups")])
    shown = run(capsys, "drill", "--last", "--out", str(tmp_path))
    assert "PASSED" in shown.out
    assert "oom: skipped: no control groups" in shown.out
    assert json.loads(run(capsys, "drill", "--last", "--json", "--out", str(tmp_path)).out)["passed"] is True


def test_without_results_there_is_no_last_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ended = run(capsys, "drill", "--last", "--out", str(tmp_path))
    assert (ended.status, "no drill has been run" in ended.err) == (1, True)


def test_every_field_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert "findings[].detected_s" in json.loads(run(capsys, "drill", "--schema").out)["fields"]


def test_what_somebody_has_to_know_stands_below_the_table() -> None:
    missed = Verdict(name="lost", row="S1-65", bar="lost <= 0", measured="3", passed=False, why="look there")
    told = remarks(findings(verdicts=[missed], left_broken=["a is down"], aborted="too many errors"))
    assert told == ["NOT PUT BACK: a is down", "ended early: too many errors", "lost <= 0: 3 (S1-65); look there"]


class Scripted:
    """In place of a session: each play gives the next result; the last one is interrupted."""

    plays: list[bool]

    def __init__(self, options: SessionOptions, *_: object) -> None:
        self._options = options
        self.is_interrupted = False

    def play(self, _drills: list[Drill]) -> DrillResults:
        has_passed = self.plays.pop(0)
        self.is_interrupted = not self.plays
        verdict = Verdict(name="lost", row="r", bar="b", measured="m", passed=has_passed)
        return DrillResults(
            began="2026-12-01T03:00:00+00:00",
            command=self._options.command,
            deployment="own",
            seed=self._options.seed,
            is_short=self._options.is_short,
            rate_per_s=1.0,
            findings=[findings(verdicts=[verdict])],
        )


def test_a_schedule_plays_again_until_it_is_interrupted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "DrillSession", Scripted)
    monkeypatch.setattr(Scripted, "plays", [True, False, True], raising=False)
    slept: list[object] = []
    monkeypatch.setattr(command, "_sleep_until", slept.append)
    ended = run(capsys, "drill", "all", "--every", "24h", "--short", "--out", str(tmp_path))
    assert ended.status == 130
    assert len(slept) == 2
    assert ended.out.count("next: ") == 2
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 3


@pytest.mark.parametrize(("plays", "status"), [([True, True], 0), ([False, True], 1)])
def test_the_exit_status_tells_whether_all_bars_were_met(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plays: list[bool],
    status: int,
) -> None:
    monkeypatch.setattr(command, "DrillSession", Scripted)
    monkeypatch.setattr(Scripted, "plays", plays, raising=False)
    assert run(capsys, "drill", "freeze", "--out", str(tmp_path)).status == status


def test_a_time_that_has_come_is_not_slept_for() -> None:
    command._sleep_until(datetime.now().astimezone())


def test_the_pace_follows_the_file_and_the_command_line() -> None:
    assert SessionOptions(is_short=True).pace.baseline_s < SessionOptions().pace.baseline_s
    assert SessionOptions(rate_per_s=7.0).pace.rate_per_s == 7.0


def test_an_interrupted_session_says_that_the_rest_was_not_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    session = DrillSession(SessionOptions(folder=tmp_path), {}, said.append)

    async def interrupted(*_: object) -> None:
        session.is_interrupted = True

    monkeypatch.setattr(session, "_interruptible", interrupted)
    assert session.play([drill()]).notes == ["interrupted: the drills that follow were not played"]
