"""A comparison in a terminal: a table per scenario, a row per policy, and bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tidegate.simulate.comparison import Cell, Comparison

BLOCKS = " ▏▎▍▌▋▊▉█"
BAR_COLUMNS = 40

Row = Mapping[str, Any]

COLUMNS: dict[str, Callable[[Row], str]] = {
    "in SLO": lambda row: _percent(row["goodput_requests"]),
    "tokens": lambda row: _percent(row["goodput_tokens"]),
    "errors": lambda row: _percent(row["errors"]["rate"]),
    "TTFT p50": lambda row: _time(row, row["ttft_s"]["p50"]),
    "TTFT p95": lambda row: _time(row, row["ttft_s"]["p95"]),
    "E2E p50": lambda row: _time(row, row["e2e_s"]["p50"]),
    "E2E p95": lambda row: _time(row, row["e2e_s"]["p95"]),
    "gap p99": lambda row: _time(row, row["gap_s"]["p99"], 3),
    "p99/p50": lambda row: _time(row, row["jitter_ratio"]),
    "P95 std": lambda row: _time(row, row["p95_std_s"]),
    "recovery": lambda row: _time(row, row["recovery_s"]),
    "refused p95": lambda row: _time(row, row["refused_after_s"]["p95"], 3),
    "per s": lambda row: _time(row, row["throughput_per_s"]),
    "degraded": lambda row: _percent(row["degraded"] / row["offered"] if row["offered"] else 0.0),
    "of burst": lambda row: _known_percent((row["burst"] or {}).get("degraded_rate")),
    "std ratio": lambda row: _time(row, row["p95_std_ratio"], 1),
    "in time": lambda row: _known_percent(_timely(row, "burst_rate") or _timely(row, "rate")),
    "time p99": lambda row: _time(row, _timely(row, "p99_s")),
    "worst errors": lambda row: _known_percent(row["worst"]["errors_rate"]),
    "worst of burst": lambda row: _known_percent(row["worst"]["degraded_rate"]),
    "worst recovery": lambda row: _time(row, row["worst"]["recovery_s"]),
    "worst ratio": lambda row: _time(row, row["worst"]["p95_std_ratio"], 1),
}
"""Of the table; seconds unless they are shares. ``std ratio``: native's P95 std by one's own."""
TABLES = (7, 6, 5, 4)
"""So many columns in each table under the other; of the last two, only what is about something."""
TIMELESS = ("bound", "bound:tokens", "bound:blind")
"""They answer at once, so their times mean nothing."""


def print_comparison(found: Comparison, plot: Path | None) -> None:
    console = Console()
    for scenario in found.scenarios:
        cells = [*found.of_scenario(scenario)]
        notes = "".join(f", {name} {value}" for name, value in found.notes[scenario].items())
        console.print(f"{scenario}: simulated, medians of {len(found.seeds)} seed(s){notes}", soft_wrap=True)
        for columns in _tables(cells, len(found.seeds)):
            console.print(_figures(cells, columns))
        console.print(_breakdown(cells, "classes", "kind"))
        console.print(_breakdown(cells, "prompt_lengths", "prompt tokens"))
        for cell in cells:
            if cell.figures["played"] != cell.policy:
                console.print(f"{cell.policy} found {cell.figures['played']}", soft_wrap=True)
    if len(found.scenarios) > 1:
        console.print(_load_table(found))
    _print_bars(console, found)
    console.print(f"traffic: {found.source}", soft_wrap=True)
    if plot is not None:
        console.print(f"pictures: {plot}", soft_wrap=True)


def _tables(cells: list[Cell], seeds: int) -> Iterator[list[str]]:
    names = iter(COLUMNS)
    first, second, lesser, worst = ([*islice(names, count)] for count in TABLES)
    yield first
    yield second
    if any(cell.figures["degraded"] or _timely(cell.figures, "rate") is not None for cell in cells):
        yield lesser
    if seeds > 1:
        yield worst


def _timely(row: Row, name: str) -> float | None:
    """Of answers, or of whole chains of them."""
    found: float | None = (row.get("done_in_time") or row.get("chains") or {}).get(name)
    return found


def _empty(*heads: str) -> Table:
    """Without upright lines, so that it fits a terminal of 80 columns; all but the first stand to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, head in enumerate(heads):
        table.add_column(head, justify="right" if index else "left")
    return table


def _figures(cells: Iterable[Cell], columns: list[str]) -> Table:
    table = _empty("policy", *columns)
    for cell in cells:
        table.add_row(cell.policy, *(COLUMNS[name](cell.figures) for name in columns))
    return table


def _breakdown(cells: list[Cell], key: str, title: str) -> Table:
    """Of each group the shares in their SLO / answered, a column per group."""
    groups = cells[0].figures[key]
    table = _empty(f"in SLO / served by {title}, %", *(f"{name} ({groups[name]['offered']:g})" for name in groups))
    for cell in cells:
        found = cell.figures[key]
        table.add_row(cell.policy, *(_two_shares(found[name]) for name in groups))
    return table


def _load_table(found: Comparison) -> Table:
    """Requests in their SLO, a column per load."""
    table = _empty("in SLO", *found.scenarios)
    for policy in found.policies:
        table.add_row(policy, *(_percent(cell.figures["goodput_requests"]) for cell in found.of_policy(policy)))
    return table


def _print_bars(console: Console, found: Comparison) -> None:
    width = max(map(len, found.policies))
    for scenario in found.scenarios:
        console.print(f"in SLO, of requests: {scenario}", soft_wrap=True)
        for cell in found.of_scenario(scenario):
            share = cell.figures["goodput_requests"]
            line = f"{cell.policy:>{width}} |{_bar(share)}| {_percent(share)}"
            console.print(line, soft_wrap=True, highlight=False)


def _bar(share: float) -> str:
    eighths = round(share * BAR_COLUMNS * 8)
    whole, rest = divmod(eighths, 8)
    return (BLOCKS[-1] * whole + (BLOCKS[rest] if rest else "")).ljust(BAR_COLUMNS)


def _two_shares(group: Row) -> str:
    return f"{group['in_slo_rate'] * 100:.1f} / {group['served_rate'] * 100:.1f}"


def _known_percent(share: float | None) -> str:
    return "-" if share is None else _percent(share)


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _time(row: Row, seconds: float | None, digits: int = 2) -> str:
    return "-" if seconds is None or row["policy"] in TIMELESS else f"{seconds:.{digits}f}"
