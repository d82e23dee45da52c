"""``plan slots`` for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def print_slots(told: dict[str, Any]) -> None:
    """``told`` is the report of ``plan.slot_sizes``."""
    console = Console()
    skipped = f", lines skipped: {told['skipped']}" if told["skipped"] else ""
    console.print(
        f"{told['requests']} requests from {told['source']} ({told['form']}{skipped})", soft_wrap=True, markup=False
    )
    console.print(_lengths(told["lengths"]))
    console.print(_sizes(told))
    for line in _sentences(told):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _lengths(lengths: dict[str, dict[str, float]]) -> Table:
    table = Table("tokens", show_edge=False)
    for name in lengths["total"]:
        table.add_column(name, justify="right")
    for name, row in lengths.items():
        table.add_row(name, *(f"{value:.0f}" for value in row.values()))
    return table


def _sizes(told: dict[str, Any]) -> Table:
    """Columns without a figure (no model, no GPU) are left out."""
    table = Table(show_edge=False)
    shown = {name: cell for name, cell in COLUMNS.items() if cell(told["sizes"][0]) is not None}
    for name in shown:
        table.add_column(name, justify="right")
    for row in told["sizes"]:
        mark = " *" if row["slot_tokens"] == told["slot_tokens"] else "  "
        first, *others = (str(cell(row)) for cell in shown.values())
        table.add_row(first + mark, *others)
    return table


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


Cell = Callable[[dict[str, Any]], object]
COLUMNS: Mapping[str, Cell] = {
    "slot": lambda row: row["slot_tokens"],
    "MiB": lambda row: None if row["slot_mib"] is None else f"{row['slot_mib']:.1f}",
    "slots": lambda row: row["slots"],
    "each": lambda row: f"{row['slots_per_request']:.2f}",
    "waste": lambda row: _percent(row["internal_waste"]),
    "at once": lambda row: row["concurrent"],
    "waste †": lambda row: _percent(row["bound_waste"]),
    "at once †": lambda row: row["concurrent_bound"],
}


def _sentences(told: dict[str, Any]) -> list[str]:
    lines = [
        "slot: size in tokens, * P95 × 1.2; each: slots that a request holds; waste: KV held and not filled",
        f"† when each request reserves {told['default_max_tokens']} tokens of output, as without a bound of its own",
        *told["advice"],
        *(f"{key}: {value}" for key, value in told["settings"].items()),
        f"--max-model-len {told['max_model_len']} (P99 × 1.2)",
    ]
    if told["recommended_max_num_seqs"] is not None:
        lines.append(f"--max-num-seqs {told['recommended_max_num_seqs']}")
    return lines
