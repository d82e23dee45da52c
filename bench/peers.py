"""Tidegate beside other gateways: CPU per request and per streamed chunk, as ratios to nginx.

    TIDEGATE_PEERS=FOLDER python bench/peers.py [--rounds 4] [--gate] [--json] [PEER …]

FOLDER holds the comparison: ``scripts/`` (a mock engine and a load client in C, ``bench.py`` and
``alt.py``), ``conf/``, ``bodies/`` and ``floor/``. It is copied, never written to. PEERs are names
that its ``bench.py`` knows; nginx is always one of them. The compiled build is measured beside the
pure one when ``make compiled`` has made it. ``--gate`` fails above 4 × nginx per request or 1.7 × per
chunk (DESIGN's budget) for the row in which nobody waits, of the compiled build where there is one.

All gateways run at once and are loaded in turns, in random order within each round; the figure is
the median of the per-round ratios, because the same machine gives twice the time from one minute to
the next.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FRONT = Path(__file__).resolve().parent / "rows" / "front.py"
ROWS = {
    "tidegate": ["9301", "9100"],
    "tidegate-8-replicas": ["9302", "9100", "8"],
    "tidegate-all-wait": ["9303", "9100", "1", "8"],
}
"""Arguments of ``front.py``: port, engine's port, replicas, sequences per replica. With 8 sequences and
64 connections every request waits once."""
COMPILED = Path(__file__).resolve().parent.parent / "build" / "compiled"
COMPILED_ROWS = {
    "tidegate-compiled": ["9304", "9100"],
    "tidegate-compiled-8-replicas": ["9305", "9100", "8"],
    "tidegate-compiled-all-wait": ["9306", "9100", "1", "8"],
}
"""The same on the compiled build, where ``make compiled`` has made one."""
MOST_PER_REQUEST = 4.0
MOST_PER_CHUNK = 1.7
TOOLS = ("mock", "cli", "calib")


def prepare(source: Path, folder: Path) -> None:
    """A writable copy with its C tools compiled and our interpreter where its prototypes expect one."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    for tool in TOOLS:
        target = folder / "scripts" / tool
        subprocess.run(["gcc", "-O2", "-w", "-o", target, target.with_suffix(".c")], check=True)
    for name in ("results", "logs", *(f"conf/n{letter}" for letter in "bpfus")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name).chmod(0o777)
    python = folder / "venvs" / "proto" / "bin" / "python"
    if not python.exists():
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)


def rows() -> dict[str, list[str]]:
    return ROWS | COMPILED_ROWS if (COMPILED / "stamp").exists() else ROWS


def run(folder: Path, rounds: int, names: list[str]) -> dict[str, Any]:
    """The alternated comparison; figures by name."""
    os.environ["PEERS_ROOT"] = str(folder)
    os.environ["OUT"] = "tidegate"
    sys.path.insert(0, str(folder / "scripts"))
    peers = importlib.import_module("bench")
    for name, arguments in rows().items():
        path = ["env", f"PYTHONPATH={COMPILED}"] if name in COMPILED_ROWS else []
        peers.peer(name, int(arguments[0]), [*path, sys.executable, str(FRONT), *arguments])
    sys.argv = ["alt.py", str(rounds), *names]
    runpy.run_path(str(folder / "scripts" / "alt.py"), run_name="__main__")
    figures: dict[str, Any] = json.loads((folder / "results" / "tidegate.json").read_text())
    return figures


def table(figures: dict[str, Any]) -> str:
    lines = [f"{'':30}{'x nginx/request':>16}{'x nginx/chunk':>15}{'us/request':>12}{'us/chunk':>10}{'spread':>12}"]
    lines += [
        f"{name:30}{row['x_nginx_req']:>16}{row['x_nginx_chunk']:>15}{row['us_req']:>12}{row['us_chunk']:>10}"
        f"{row['spread_req'][0]:>8}-{row['spread_req'][1]}"
        for name, row in figures.items()
    ]
    return "\n".join(lines)


def verdict(row: dict[str, Any]) -> list[str]:
    """What passes the budget."""
    found = []
    if row["x_nginx_req"] > MOST_PER_REQUEST:
        found.append(f"{row['x_nginx_req']} x nginx per request; the budget is {MOST_PER_REQUEST}")
    if row["x_nginx_chunk"] > MOST_PER_CHUNK:
        found.append(f"{row['x_nginx_chunk']} x nginx per chunk; the budget is {MOST_PER_CHUNK}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU per request and per chunk beside other gateways")
    parser.add_argument("peers", nargs="*", help="other gateways that FOLDER's bench.py knows and that are installed")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--gate", action="store_true", help="exit 1 above the budget")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")
    options = parser.parse_args()
    source = os.environ.get("TIDEGATE_PEERS")
    missing = [tool for tool in ("gcc", "nginx") if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if not source or not Path(source, "scripts", "alt.py").is_file() or missing:
        print(
            "Not compared: this needs gcc and nginx, and TIDEGATE_PEERS naming the comparison's folder "
            f"(scripts/alt.py in it). Missing here: {', '.join(missing) or 'the folder'}.",
            file=sys.stderr,
        )
        return 2 if options.gate else 0
    with tempfile.TemporaryDirectory() as name, Path(os.devnull).open("w") as nowhere:
        folder = Path(name)
        # The mock, nginx's worker and the load client all work here, not always as this user.
        folder.chmod(0o755)
        prepare(Path(source), folder)
        shown = sys.stdout
        sys.stdout = nowhere if options.json else sys.stdout
        try:
            figures = run(folder, options.rounds, list(dict.fromkeys(["nginx", *options.peers, *rows()])))
        finally:
            sys.stdout = shown
            os.chdir(FRONT.parent)
    print(json.dumps(figures) if options.json else table(figures))
    found = verdict(figures.get("tidegate-compiled", figures["tidegate"]))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if options.gate and found else 0


if __name__ == "__main__":
    sys.exit(main())
