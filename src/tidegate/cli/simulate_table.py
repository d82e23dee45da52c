"""Simulated runs as a table, and their course as a line of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tidegate.simulate.course import course
from tidegate.simulate.report import report
from tidegate.simulate.run import Run
from tidegate.simulate.summary import medians

BARS = " ▁▂▃▄▅▆▇█"


def print_runs(runs: Sequence[Run]) -> None:
    """Per policy the medians over its seeds, and P95 TTFT over time of the first seed."""
    console = Console()
    by_policy: dict[str, list[Run]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run)
    merged = {policy: medians([report(run) for run in group]) for policy, group in by_policy.items()}
    console.print(_heading(runs), soft_wrap=True)
    console.print(_figures(merged))
    for policy, group in by_policy.items():
        console.print(_course(policy, group[0]), soft_wrap=True, highlight=False)
    for policy, row in merged.items():
        if row["played"] != policy:
            console.print(f"{policy} found {row['played']}", soft_wrap=True)
        refusals = ", ".join(f"{reason} {count:g}" for reason, count in row.get("refusals", {}).items())
        if refusals:
            console.print(f"{policy} refused calls: {refusals}", soft_wrap=True)


def _heading(runs: Sequence[Run]) -> str:
    scenario, seeds = runs[0].scenario, sorted({run.seed for run in runs})
    notes = "".join(f", {name} {value}" for name, value in scenario.notes.items())
    return (
        f"{scenario.name}: {len(scenario.engines)} simulated engine(s), {len(scenario.demands)} requests, "
        f"seed(s) {', '.join(map(str, seeds))}{notes}\ntraffic: {scenario.source}; "
        f"SLO: TTFT {scenario.slo.ttft_s:g} s, TPOT {scenario.slo.tpot_s * 1e3:g} ms"
    )


def _figures(merged: dict[str, dict[str, Any]]) -> Table:
    """A column per policy, so that it fits a terminal of 80 columns."""
    table = Table("")
    for policy in merged:
        table.add_column(policy, justify="right")
    columns = [_rows(row) for row in merged.values()]
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(column.get(name, "-") for column in columns))
    return table


def _rows(row: dict[str, Any]) -> dict[str, str]:
    errors, ttft, e2e = row["errors"], row["ttft_s"], row["e2e_s"]
    kinds = " + ".join(f"{errors[kind]:g} {kind}" for kind in ("timeout", "refused", "engine") if errors[kind])
    rows = {
        "in SLO, of requests": _percent(row["goodput_requests"]),
        "in SLO, of tokens": _percent(row["goodput_tokens"]),
        "errors": _percent(errors["rate"]),
        "  of which": kinds or "-",
        "answered on a retry": f"{row['retried_ok']:g}",
        "TTFT p50/p95/p99 (s)": " / ".join(_seconds(ttft[name]) for name in ("p50", "p95", "p99")),
        "E2E p50/p95/p99 (s)": " / ".join(_seconds(e2e[name]) for name in ("p50", "p95", "p99")),
        "gap between tokens p99/max (s)": " / ".join(_milliseconds(row["gap_s"][name]) for name in ("p99", "max")),
        "std of P95 TTFT (s)": _seconds(row["p95_std_s"]),
        "recovery (s)": _seconds(row["recovery_s"]),
        "answers per second": _seconds(row["throughput_per_s"]),
        "refused after p50/p95 (s)": " / ".join(_milliseconds(row["refused_after_s"][name]) for name in ("p50", "p95")),
        "engine preemptions": f"{row['preemptions']:g}",
    } | _lesser(row)
    for name, figures in row["classes"].items():
        in_slo, tail = _percent(figures["in_slo_rate"]), _seconds(figures["ttft_p95_s"])
        rows[f"{name}: in SLO, TTFT p95 (s)"] = f"{in_slo}, {tail}"
    for name, figures in row["prompt_lengths"].items():
        rows[f"prompts {name}: in SLO, served"] = (
            f"{_percent(figures['in_slo_rate'])}, {_percent(figures['served_rate'])}"
        )
    tenants = row.get("tenants")
    if tenants:
        gap = tenants["worst_gap_tokens"]
        rows["worst gap of a tenant (tokens)"] = "-" if gap is None else f"{gap:.0f}"
    rows |= _memory(row.get("memory") or {}) | _pool(row.get("pool") or {})
    rows["simulated in (s)"] = _seconds(row["wall_s"])
    return rows


def _lesser(row: dict[str, Any]) -> dict[str, str]:
    """Degraded answers, and answers in time where the scenario names one."""
    rows = {}
    if row["degraded"]:
        of_burst = (row.get("burst") or {}).get("degraded_rate")
        of_those = "" if of_burst is None else f", {_percent(of_burst)}"
        rows["degraded, of the burst"] = f"{row['degraded']:g}{of_those}"
        rows["  by which rung"] = " + ".join(f"{count:g} {rung}" for rung, count in row.get("rungs", {}).items())
    for name, key in (("answers", "done_in_time"), ("chains", "chains")):
        found = row.get(key)
        if found:
            in_burst = found.get("burst_rate")
            shares = _percent(found["rate"]) + ("" if in_burst is None else f", {_percent(in_burst)} in the burst")
            rows[f"{name} within {found['limit_s']:g} s"] = f"{shares}; p99 {_seconds(found.get('p99_s'))}"
    if row.get("calm_ratio") is not None:
        rows["E2E p99 by the calm mean"] = f"{row['calm_ratio']:.1f}"
    return rows


def _memory(memory: dict[str, float | None]) -> dict[str, str]:
    if not memory:
        return {}
    shown = {
        "KV allocated, of the pool": memory["pool_pressure"],
        "external fragmentation": memory["external_fragmentation"],
        "allocated and empty": memory["internal_waste"],
        "reserved by the ledger": memory["reserved_share"],
        "reserved and empty": memory["reserved_waste"],
    }
    return {name: "-" if share is None else _percent(share) for name, share in shown.items()}


def _pool(pool: dict[str, Any]) -> dict[str, str]:
    """Under a burst, of the memory that several models share."""
    rows = {}
    for model, figures in pool.get("models", {}).items():
        reserved = "-" if figures["reserved_share"] is None else _percent(figures["reserved_share"])
        rows[f"{model}: filled, reserved, floor"] = (
            f"{_percent(figures['filled_share'])}, {reserved}, {_percent(figures['floor_share'])}"
        )
    return rows


def _course(policy: str, run: Run) -> str:
    """P95 TTFT of each slice of time; full height is the worst."""
    found = course(run.visits)
    worst = max((tail_s for tail_s in found.tails_s if tail_s is not None), default=0.0)
    bars = "".join(_bar(tail_s or 0.0, worst) for tail_s in found.tails_s)
    return f"{policy:>14} |{bars}| P95 TTFT, full bar {worst:.2f} s, {found.slice_s:g} s a column"


def _bar(value: float, worst: float) -> str:
    return BARS[round(value / worst * (len(BARS) - 1))] if worst > 0 else BARS[0]


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f}"
