"""Bars of drills, and what findings say of themselves."""

from __future__ import annotations

import pytest

from tests.load.drills.made_findings import findings, restart
from tidegate.load.drills.bar import Bar, detected, figure, not_duplicated, recovered
from tidegate.load.drills.restart_bars import restart_bars
from tidegate.load.drills.restart_inspection import keep, used_by
from tidegate.load.verdict import Verdict


def test_a_figure_within_its_bounds_is_passed_and_needs_no_hint() -> None:
    bar = Bar(name="share", row="S1-70", figure=figure("share"), most=0.75, least=0.1, hint="look")
    verdict = bar.judge(findings(figures={"share": 0.5}))
    assert (verdict.passed, verdict.why) == (True, "")
    assert verdict.bar == "share <= 0.75 and >= 0.1"


@pytest.mark.parametrize("value", [0.8, 0.05])
def test_a_figure_beyond_a_bound_is_missed_and_says_where_to_look(value: float) -> None:
    bar = Bar(name="share", row="S1-70", figure=figure("share"), most=0.75, least=0.1, hint="look")
    verdict = bar.judge(findings(figures={"share": value}))
    assert (verdict.passed, verdict.why) == (False, "look")


def test_what_was_not_seen_is_no_pass() -> None:
    verdict = not_duplicated().judge(findings(duplicated=None))
    assert (verdict.passed, verdict.measured) == (None, "not seen")
    assert findings(verdicts=[verdict]).passed is False


def test_what_only_an_insider_sees_is_left_open_on_a_deployment_that_was_given() -> None:
    found = findings(is_own=False, duplicated=None)
    found.verdicts = [not_duplicated().judge(found)]
    assert (found.verdicts[0].is_required, found.passed) == (False, True)
    found = findings(is_own=False, duplicated=2)
    found.verdicts = [not_duplicated().judge(found)]
    assert found.passed is False


def test_detection_and_recovery_are_judged_in_seconds() -> None:
    found = findings(detected_s=2.5, recovered_s=11.0)
    assert detected(5.0).judge(found).passed is True
    assert recovered(10.0).judge(found).measured == "11 s after the healing"
    assert recovered(10.0).judge(found).passed is False


def test_a_drill_that_left_something_broken_or_was_ended_early_has_failed() -> None:
    met = Verdict(name="n", row="r", bar="b", measured="m", passed=True)
    assert findings(verdicts=[met]).passed is True
    assert findings(verdicts=[met], left_broken=["a"]).passed is False
    assert findings(verdicts=[met], aborted="too many errors").passed is False


def test_a_skipped_drill_has_neither_passed_nor_failed() -> None:
    assert findings(skipped="no control groups").passed is None


def test_errors_are_not_sheds_and_not_degraded_answers() -> None:
    outcomes = {"ok": 3, "shed": 2, "degraded": 1, "broken": 2, "timeout": 1, "refused": 1, "error": 1}
    assert findings(outcomes=outcomes).errors == 5


def test_a_restart_that_left_nothing_behind_meets_its_bars() -> None:
    found = findings()
    keep(found, restart())
    assert [bar.judge(found).passed for bar in restart_bars(20.0, 10.0)] == [True] * 5


def test_of_several_restarts_the_worst_is_judged() -> None:
    found = findings()
    keep(found, restart())
    keep(found, restart(is_loaded=False, back_s=25.0, cached_first=80, resident_after_bytes=900 << 20))
    passed = [bar.judge(found).passed for bar in restart_bars(20.0, 10.0)]
    assert passed == [False, False, True, False, False]


def test_one_restart_that_nobody_saw_leaves_its_figures_open() -> None:
    found = findings()
    keep(found, restart())
    keep(found, restart(back_s=None))
    assert found.figures["back_s"] is None


def test_memory_of_a_gpu_counts_before_that_of_the_process() -> None:
    assert restart().residual == 380 / 400
    assert restart(gpu_before_bytes=100, gpu_after_bytes=200).residual == 2.0
    assert restart(resident_before_bytes=None).residual is None


def test_of_a_cache_that_nobody_knows_nothing_is_said() -> None:
    assert restart(cached_first=None).warm_share is None
    assert restart(cached_before=0).warm_share is None


def test_gpu_memory_is_read_from_the_lines_of_that_process() -> None:
    table = "123, 400\n124, 900\n123, 100\nnonsense\n125, [N/A]\n"
    assert used_by(123, table) == 500 << 20
    assert used_by(125, table) is None
