"""What reserving costs and saves on vLLM: one table, every row on the same loads.

    python bench/vllm_reservation.py [--requests 160] [--seeds 51,52,53] [--loads exact,early] [--json]

Drives vLLM's own scheduler with a model that is not there, so steps, preemptions and stalls in steps are exact and the
machine's load does not matter. ``--real SEED`` runs a few rows on real servers instead (minutes each).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.vllm_runs import place, server
from bench.vllm_runs.loads import draw
from bench.vllm_runs.rows import LEARNED_COLD, NATIVE, PEAK, ROWS, WORST_CASE, Row

HEAD = (
    "load     row                      steps   each seed            preempted  gap95 gap99   max  TTFT50 TTFT95  e2e95"
    "   tok/s"
)
CLIENTS = 32


def stepped(kinds: list[str], count: int, seeds: list[int], talks: bool) -> list[dict[str, Any]]:
    """Seeds are the inner loop and rows the outer one: nothing here depends on time."""
    if talks:
        print(HEAD)
    found = []
    with place.steps() as steps:
        for kind in kinds:
            for row in ROWS:
                loads = [{"kind": kind, "count": count, "seed": seed, "clients": CLIENTS} for seed in seeds]
                runs = [steps.ask(engine=row.engine, load=load, warm=row.warm) for load in loads]
                found.append({"load": kind, "row": row.name, "seeds": seeds, "runs": runs})
                if talks:
                    print(line(found[-1], native_of(found, kind)), flush=True)
    return found


def native_of(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = next(each["runs"] for each in found if each["load"] == kind)
    return runs


def line(result: dict[str, Any], native: list[dict[str, Any]]) -> str:
    """Medians over the seeds but for the steps (mean of the ratios) and what is preempted (of all)."""
    runs = result["runs"]
    ratios = [run["steps"] / base["steps"] for run, base in zip(runs, native, strict=True)]
    preempted = 100 * sum(run["preempted"] for run in runs) / sum(run["requests"] for run in runs)

    def mid(name: str, which: str) -> float:
        return statistics.median(run[name][which] for run in runs)

    seeds = " ".join(f"{ratio:.3f}" for ratio in ratios)
    stalls = f"{mid('gap_steps', 'p95'):5.0f} {mid('gap_steps', 'p99'):5.0f} {mid('gap_steps', 'max'):5.0f}"
    times = f"{mid('ttft_steps', 'p50'):6.0f} {mid('ttft_steps', 'p95'):6.0f} {mid('e2e_s', 'p95'):6.1f}"
    speed = statistics.median(run["tokens_per_s"] for run in runs)
    row = f"{result['load']:8} {result['row']:24} {statistics.mean(ratios):.3f}   {seeds:20} {preempted:7.1f} %"
    return f"{row}  {stalls}  {times}  {speed:6.1f}"


def flags_of(row: Row, history: Path) -> tuple[str, ...]:
    if "scheduler" not in row.engine:
        return ()
    settings = dict(row.engine["tidegate"])
    if settings.get("lengths") == "learned":
        settings["history_file"] = str(history)
    return ("--scheduler-cls", row.engine["scheduler"], "--additional-config", json.dumps({"tidegate": settings}))


def warmed(kind: str, count: int, seed: int, history: Path) -> None:
    """Lengths learned on another seed, as a server that ran before would have left them."""
    engine = {**LEARNED_COLD.engine, "tidegate": {"lengths": "learned", "history_file": str(history)}}
    with place.steps() as steps:
        steps.ask(engine=engine, load={"kind": kind, "count": count, "seed": 9000 + seed * 10, "clients": CLIENTS})


def real(kinds: list[str], count: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            rows = (NATIVE, PEAK, WORST_CASE) if kind == "exact" else (NATIVE, LEARNED_COLD)
            for row in rows:
                history = Path(folder) / f"{kind}.json"
                if row is LEARNED_COLD:
                    warmed(kind, count, seed, history)
                log, flags = Path(folder) / "server.log", flags_of(row, history)
                with server.server(str(place.python()), str(place.model()), log, *flags) as started:
                    found = server.run(started, draw(kind, count, seed), CLIENTS, seed)
                print(json.dumps({"load": kind, "row": row.name, "seed": seed, **found}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=160)
    parser.add_argument("--seeds", default="51,52,53")
    parser.add_argument("--loads", default="exact,early")
    parser.add_argument("--json", action="store_true", help="every run in full, one object on standard output")
    parser.add_argument("--real", type=int, metavar="SEED", help="on real servers, a line of JSON for each")
    asked = parser.parse_args()
    if not place.is_there():
        print(f"skipped: {place.MISSING}")
        return
    kinds = asked.loads.split(",")
    if asked.real is not None:
        real(kinds, asked.requests, asked.real)
        return
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    found = stepped(kinds, asked.requests, seeds, talks=not asked.json)
    if asked.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
