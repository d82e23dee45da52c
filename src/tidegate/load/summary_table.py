"""The end of a run on the terminal: phases and their figures, bars, notes, and where the files are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.load.distribution import LEAST_FOR_P99, Distribution
from tidegate.load.figure_text import NOTHING, count_text, digits, seconds_text, share_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.result import Result
from tidegate.load.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PASSED, FAILED, INVALID, NOT_JUDGED = "PASSED", "FAILED", "INVALID", "NOT JUDGED"
STYLES = {PASSED: "bold green", FAILED: "bold red", INVALID: "bold yellow", NOT_JUDGED: "bold cyan"}
WORDS = {True: ("green", "pass"), False: ("red", "FAIL"), None: ("yellow", "not judged")}


def verdict_of(result: Result) -> str:
    """One word. Figures of a generator that lagged say nothing about the target, whatever the bars say."""
    if result.invalid:
        return INVALID
    if result.passed is None:
        return NOT_JUDGED
    return PASSED if result.passed else FAILED


def reason_of(result: Result) -> str:
    """The verdict in a sentence."""
    if result.invalid:
        return "The figures tell about the generator or the plan, not about the target: " + "; ".join(result.invalid)
    if result.passed is None:
        return "No bars were asked for: give --gates acceptance, burst or a file of your own."
    missed = _named(each for each in result.verdicts if each.passed is False)
    unknown = _named(each for each in result.verdicts if each.passed is None and each.is_required)
    if not missed and not unknown:
        return f"All {len(result.verdicts)} bars were met."
    parts = [f"Missed: {', '.join(missed)}."] if missed else []
    return " ".join([*parts, *([f"Could not be judged, which is no pass: {', '.join(unknown)}."] if unknown else [])])


def _named(verdicts: Iterable[Verdict]) -> list[str]:
    """Each figure once, with the targets."""
    found: dict[str, list[str]] = {}
    for each in verdicts:
        found.setdefault(each.name, []).extend([each.target] if each.target else [])
    return [f"{name} of {' and '.join(targets)}" if targets else name for name, targets in found.items()]


def print_summary(result: Result, console: Console, files: Sequence[Path] = ()) -> None:
    """Several tables and lines."""
    for columns in ((*COUNTS, *TIMES),) if console.width >= WIDE else (COUNTS, TIMES):
        console.print(phases_table(result.phases, columns))
    if any(_is_short(each) for each in result.phases):
        console.print("* the largest of fewer than 100 values", style="bright_black")
    if result.verdicts:
        console.print(bars_table(result.verdicts))
    for note in (*advice(result.verdicts), *result.notes):
        console.print(f"· {note}", markup=False, highlight=False)
    for path in files:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    word = verdict_of(result)
    console.print(f"[{STYLES[word]}]{word}[/] ", end="")
    console.print(reason_of(result), markup=False, highlight=False)


Column = tuple[str, Callable[[PhaseFigures], str]]

COUNTS: tuple[Column, ...] = (
    ("due", lambda each: count_text(each.all.due)),
    ("sent/s", lambda each: digits(each.sent_rate_per_s)),
    ("ok/s", lambda each: digits(each.answered_per_s)),
    ("good/s", lambda each: digits(each.all.goodput_per_s)),
    ("errors", lambda each: share_text(each.all.error_rate)),
    ("shed", lambda each: share_text(each.all.shed_rate)),
    ("degraded", lambda each: share_text(each.all.degraded_rate)),
    ("late", lambda each: count_text(each.all.late)),
)
TIMES: tuple[Column, ...] = (
    ("TTFT P50", lambda each: _p50(each.all.ttft)),
    ("P99", lambda each: _p99(each.all.ttft)),
    ("E2E P50", lambda each: _p50(each.all.e2e)),
    ("P99", lambda each: _p99(each.all.e2e)),
    ("P99/P50", lambda each: _jitter(each.all.e2e)),
)
WIDE = 130
"""Characters into which all columns fit."""


def phases_table(phases: Sequence[PhaseFigures], columns: Sequence[Column]) -> Table:
    """A row for each phase and target. ``!``: figures that do not count; ``*``: the largest of under 100 values."""
    from rich.table import Table  # noqa: PLC0415 - only where a table is printed

    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("phase", no_wrap=True)
    has_targets = len({each.target for each in phases}) > 1
    if has_targets:
        table.add_column("target", no_wrap=True)
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for each in phases:
        named = [each.phase + (" !" if each.invalid else ""), *([each.target] if has_targets else [])]
        table.add_row(*named, *(show(each) for _, show in columns))
    return table


def bars_table(verdicts: Sequence[Verdict]) -> Table:
    """Those that were missed first."""
    from rich.markup import escape  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above

    table = Table("", "figure", "bar", "measured", box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for verdict in sorted(verdicts, key=_rank):
        style, word = WORDS[verdict.passed]
        name = f"{verdict.target}: {verdict.name}" if verdict.target else verdict.name
        cells = (name, verdict.bar, verdict.measured or NOTHING)
        table.add_row(f"[{style}]{word}[/]", *(escape(cell) for cell in cells))
    return table


def _rank(verdict: Verdict) -> tuple[bool, bool]:
    return verdict.passed is True, verdict.passed is None


def advice(verdicts: Sequence[Verdict]) -> list[str]:
    """What to do about those that were not passed, each thing once."""
    found: dict[str, list[Verdict]] = {}
    for each in sorted(verdicts, key=_rank):
        if not each.passed and each.why:
            found.setdefault(each.why, []).append(each)
    return [f"{', '.join(_named(each))}: {why}" for why, each in found.items()]


def _is_short(phase: PhaseFigures) -> bool:
    return phase.all.e2e is not None and phase.all.e2e.count < LEAST_FOR_P99


def _p50(found: Distribution | None) -> str:
    return NOTHING if found is None else seconds_text(found.p50)


def _p99(found: Distribution | None) -> str:
    return NOTHING if found is None else seconds_text(found.p99) + "*" * (found.count < LEAST_FOR_P99)


def _jitter(found: Distribution | None) -> str:
    return NOTHING if found is None or found.jitter is None else f"{found.jitter:.1f}"
