"""Findings of drills on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_page import time_text, word_of
from tidegate.load.drills.drill_results import DrillResults
from tidegate.load.drills.findings import Findings
from tidegate.load.figure_text import count_text, seconds_text

COLOR = {"PASSED": "green", "FAILED": "red", "SKIPPED": "yellow"}


def print_results(results: DrillResults, console: Console) -> None:
    """A row per drill, and below it what was missed."""
    table = Table()
    for head in ("drill", ""):
        table.add_column(head, no_wrap=True)
    for head in ("detected", "recovered", "lost", "twice", "late", "shed", "longest"):
        table.add_column(head, justify="right")
    for each in results.findings:
        word = word_of(each)
        table.add_row(each.drill, f"[{COLOR[word]}]{word}[/]", *_cells(each))
    console.print(table)
    for note in results.notes:
        console.print(escape(note), highlight=False, soft_wrap=True)
    for each in results.findings:
        for line in remarks(each):
            console.print(f"{each.drill}: {escape(line)}", highlight=False, soft_wrap=True)


def _cells(each: Findings) -> tuple[str, ...]:
    if each.skipped:
        return ()
    return (
        time_text(each.detected_s),
        time_text(each.recovered_s),
        count_text(each.lost),
        count_text(each.duplicated),
        count_text(each.late),
        count_text(each.outcomes.get("shed", 0)),
        seconds_text(each.longest_s),
    )


def remarks(each: Findings) -> list[str]:
    """What somebody has to know beside the figures."""
    found = [f"NOT PUT BACK: {line}" for line in each.left_broken]
    found += [f"ended early: {each.aborted}"] if each.aborted else []
    found += [f"skipped: {each.skipped}"] if each.skipped else []
    found += [
        f"{verdict.bar}: {verdict.measured} ({verdict.row}){f'; {verdict.why}' if verdict.why else ''}"
        for verdict in each.verdicts
        if verdict.passed is False or (verdict.passed is None and verdict.is_required)
    ]
    return found


def list_lines(drills: Iterable[Drill]) -> list[str]:
    """What there is to play."""
    found = []
    for drill in drills:
        needs = f"\n    faults: {', '.join(drill.faults)}" if drill.faults else ""
        where = f"\n    on a deployment of its own only: {drill.needs_own}" if drill.needs_own else ""
        bars = "".join(f"\n    - {bar.text} ({bar.row})" for bar in drill.bars)
        found.append(f"{drill.name}  {drill.question}\n    {drill.fault}; {drill.restores}{needs}{where}{bars}")
    return found
