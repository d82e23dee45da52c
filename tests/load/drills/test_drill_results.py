"""Results of drills as JSON, page and folder."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.load.drills.made_findings import findings, restart
from tidegate.errors import ConfigError
from tidegate.load.drills.drill_folder import DrillFolder
from tidegate.load.drills.drill_page import drill_page, time_text
from tidegate.load.drills.drill_results import SCHEMA, DrillResults, read_results
from tidegate.load.verdict import Verdict

MISSED = Verdict(name="lost", row="S1-65", bar="lost <= 0", measured="3", passed=False, why="look at <retries>")


def results(**changes: object) -> DrillResults:
    found = DrillResults(
        began="2026-12-01T03:00:00+00:00",
        command="tidegate drill all",
        deployment="own",
        seed=1,
        is_short=True,
        rate_per_s=2.0,
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def played() -> DrillResults:
    well = findings(
        drill="node-lost",
        broken_at=3.0,
        healed_at=6.0,
        ended_at=9.0,
        detected_s=0.0,
        recovered_s=2.0,
        outcomes={"ok": 5, "broken": 1},
        restarts=[restart()],
        moments=[(float(second), 2, int(second == 3), 0.4) for second in range(9)],
    )
    ill = findings(drill="freeze", verdicts=[MISSED], left_broken=["a: <gone>"], aborted="too many errors")
    return results(findings=[well, ill, findings(drill="oom", skipped="no control groups")])


def test_json_is_read_back_as_it_was() -> None:
    whole = played()
    assert read_results(whole.to_json(), "x") == whole


def test_a_run_passes_when_all_that_could_run_passed() -> None:
    assert results(findings=[findings(), findings(skipped="why")]).passed
    assert not played().passed


def test_a_run_in_which_nothing_could_run_is_no_pass() -> None:
    assert not results(findings=[findings(skipped="why")]).passed
    assert not results().passed


def test_what_is_no_result_is_told() -> None:
    with pytest.raises(ConfigError, match=r"last\.json: no results of drills"):
        read_results(b"{}", "last.json")


def test_the_page_shows_what_was_missed_and_needs_nothing_else() -> None:
    page = drill_page(played())
    assert "look at &lt;retries&gt;" in page
    assert "NOT PUT BACK: a: &lt;gone&gt;" in page
    assert "1 passed, 1 failed, 1 skipped" in page
    assert "no control groups" in page
    assert "<svg" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_times_that_nobody_saw_are_not_shown_as_zero() -> None:
    assert [time_text(value) for value in (None, 0.0, 2.0)] == ["not seen", "at once", "2.00 s"]


def test_each_run_has_its_folder_and_the_last_is_found(tmp_path: Path) -> None:
    folder = DrillFolder(tmp_path / "kept")
    with folder.locked():
        first, second = folder.keep(results()), folder.keep(played())
    assert first[0].parent.name == "20261201-030000"
    assert second[0].parent.name == "20261201-030000-2"
    assert folder.last() == played()


def test_two_runs_at_a_time_are_refused(tmp_path: Path) -> None:
    with ExitStack() as held:
        held.enter_context(DrillFolder(tmp_path).locked())
        with pytest.raises(ConfigError, match="drills run already"):
            held.enter_context(DrillFolder(tmp_path).locked())
    with DrillFolder(tmp_path).locked():
        assert (tmp_path / ".lock").exists()


def test_a_folder_that_can_not_be_made_and_one_without_results_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--out"), DrillFolder(tmp_path / "file").locked():
        raise AssertionError("it is no folder")
    with pytest.raises(ConfigError, match="no drill has been run"):
        DrillFolder(tmp_path).last()


def test_every_field_of_a_result_that_people_read_is_explained() -> None:
    named = {name.removeprefix("findings[].").removesuffix("[]") for name in SCHEMA}
    assert {"detected_s", "recovered_s", "lost", "duplicated", "late", "verdicts", "restarts", "passed"} <= named
