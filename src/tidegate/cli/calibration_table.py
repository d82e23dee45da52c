"""A fitted engine, and how near it comes to what was measured, as tables."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from tidegate.cli.fitted import Fitted
from tidegate.simulate.calibrated_engine import costs_ms
from tidegate.simulate.likeness import QUANTILES, Likeness

MEANINGS = {
    "fixed": "per step",
    "prefill": "per prompt token",
    "sequence": "per sequence in the batch",
    "context": "per KV token read",
    "quadratic": "per prompt token and earlier token",
}


def print_fitted(found: Fitted, out: Path | None) -> None:
    console = Console()
    engine = found.calibration.engine
    config = engine.config
    console.print(
        f"{found.records}: fitted to {len(found.parts[0])} requests, {len(found.parts[1])} held out"
        + "".join(f", {count} left out ({reason})" for reason, count in found.left_out.items()),
        soft_wrap=True,
        highlight=False,
    )
    costs = Table("cost of a step", "ms")
    for name, value in costs_ms(config.step).items():
        costs.add_row(f"{name}, {MEANINGS[name]}", f"{value:.6g}")
    costs.add_row("overhead, per request, beside all steps", f"{engine.overhead_s * 1e3:.6g}")
    console.print(costs)
    console.print(
        f"sequences at most {config.max_sequences}, tokens of one step at most {config.chunk_tokens}, "
        f"context {config.context_tokens or 'not given'}",
        highlight=False,
    )
    console.print(check_table(found.check))
    console.print(f"furthest off: {found.worst_error:.1%} of what was measured", highlight=False)
    if out is not None:
        console.print(f"try policies on it: tidegate simulate own-engine@{out}", soft_wrap=True, highlight=False)


def check_table(check: list[Likeness]) -> Table:
    """Held-out requests: under each phase a row per metric."""
    table = Table("held out", "n", title="seconds: measured, simulated by the fitted engine", title_justify="left")
    for share in QUANTILES:
        for heading in (f"P{share * 100:g}", "sim.", "off"):
            table.add_column(heading, justify="right", no_wrap=True)
    for phase in dict.fromkeys(each.phase for each in check):
        table.add_section()
        table.add_row(phase or "all", *[""] * (len(table.columns) - 1))
        mine = [each for each in check if each.phase == phase]
        for metric in dict.fromkeys(each.metric for each in mine):
            row = [each for each in mine if each.metric == metric]
            table.add_row(f"  {metric.upper()}", str(row[0].count), *(cell for each in row for cell in _cells(each)))
    return table


def _cells(each: Likeness) -> tuple[str, str, str]:
    return f"{each.measured_s:.3f}", f"{each.simulated_s:.3f}", f"{each.error:+.1%}"
