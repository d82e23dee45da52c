from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tests.load.samples_of_a_run import Shape, a_run
from tidegate.load.result import Result
from tidegate.load.summary_table import print_summary, reason_of, verdict_of

SMALL = (Shape(name="single", duration_s=10.0, rate_per_s=3), Shape(name="none", duration_s=5.0, rate_per_s=1e-6))


def printed(result: Result, width: int = 140) -> str:
    text = io.StringIO()
    print_summary(result, Console(file=text, width=width, color_system=None), [Path("out/report.html")])
    return text.getvalue()


def test_phases_bars_notes_files_and_the_verdict_are_printed() -> None:
    found = printed(a_run(SMALL)[0])
    assert "Records as JSON lines." in found
    assert "out/report.html" in found
    assert re.search(r"FAIL +P99 +P99 ≤ 10 s +12.9 s", found)
    assert "· P99: Look at the time in the queue" in found
    assert "not judged" in found
    assert found.splitlines()[-1].startswith("FAILED Missed: P99. Could not be judged, which is no pass: peak.")


def test_a_p99_of_few_values_is_marked_and_explained() -> None:
    found = printed(a_run(SMALL)[0])
    assert " s* " in found
    assert "* the largest of fewer than 100 values" in found
    assert "largest" not in printed(a_run((Shape(name="long", duration_s=30.0),))[0])


def test_targets_are_named_where_there_are_several() -> None:
    assert "target" not in printed(a_run(SMALL)[0])
    assert "plain" in printed(a_run(SMALL, ("tidegate", "plain"))[0])


def test_a_narrow_terminal_gets_two_tables_in_which_nothing_is_cut() -> None:
    lines = printed(a_run(SMALL, ("tidegate", "plain"))[0], 80).splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("phase")] == [["phase", "target"]] * 2
    assert "…" not in "".join(lines)


def test_a_bar_of_several_targets_is_named_once_with_those_that_missed_it() -> None:
    result, _ = a_run(SMALL)
    missed = result.verdicts[1]
    result.verdicts = [replace(missed, target="a"), replace(missed, target="b")]
    result.verdicts.append(replace(result.verdicts[0], name="burst", passed=None, is_required=False))
    assert reason_of(result) == "Missed: P99 of a and b."
    assert "· P99 of a and b, burst of a: Look at" in printed(result)


def test_the_verdict_is_one_word_and_a_sentence() -> None:
    result, _ = a_run(SMALL)
    assert verdict_of(result) == "FAILED"
    result.verdicts = result.verdicts[:1]
    assert (verdict_of(result), reason_of(result)) == ("PASSED", "All 1 bars were met.")
    result.invalid = ["the generator lagged"]
    assert verdict_of(result) == "INVALID"
    assert "the generator lagged" in reason_of(result)
    result.invalid, result.verdicts = [], []
    assert verdict_of(result) == "NOT JUDGED"
    assert "--gates" in reason_of(result)
