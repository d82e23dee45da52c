"""``tidegate drill``: something is broken on purpose, and what users would have seen is counted."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from shlex import join
from typing import Annotated

import typer
from rich.console import Console

from tidegate.cli.drill_table import list_lines, print_results
from tidegate.cli.options import AsJson, Schema, print_schema
from tidegate.config.problem import suggestion
from tidegate.load.drills.catalogue import DRILLS, OWN_FAULTS
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.drill_file import read_drill_file
from tidegate.load.drills.drill_folder import DrillFolder
from tidegate.load.drills.drill_page import word_of
from tidegate.load.drills.drill_results import SCHEMA, DrillResults
from tidegate.load.drills.drill_schedule import every_s, next_run
from tidegate.load.drills.drill_session import DrillSession, SessionOptions
from tidegate.load.drills.findings import Findings

ALL, LIST = "all", "list"
INTERRUPTED = 130
LOOK_EVERY_S = 1.0


def drill(  # noqa: PLR0913, PLR0917 - a parameter is an option
    name: Annotated[str, typer.Argument(help="A drill, several with commas, all, or list: what there is.")] = LIST,
    deployment: Annotated[
        Path | None, typer.Option(help="A YAML of a service that runs; without it one is started for the drill.")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, max=16, help="Of the own deployment.")] = 2,
    short: Annotated[bool, typer.Option("--short", help="For CI: what a fault does at first.")] = False,
    rate: Annotated[
        float | None, typer.Option(min=0.01, help="Steady load, requests a second. Default: as this machine can.")
    ] = None,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="Again and again: 24h, 7d. Ends by Ctrl-C.")] = None,
    last: Annotated[bool, typer.Option("--last", help="Show the last results that --out keeps; play nothing.")] = False,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal traffic.")] = 1,
    out: Annotated[Path, typer.Option(help="Where results are kept: a folder per run.")] = Path("drills"),
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Break it on purpose under a steady load, put it back, and see what users would have seen.

    Exit status: 0 all bars were met; 1 one was missed; 130 interrupted, after all was put back. A drill that can't run
    here is told as skipped, and is no pass.
    """
    if schema:
        print_schema(SCHEMA)
        return
    folder, to = DrillFolder(out), (Console(stderr=as_json), as_json)
    if last:
        _show(folder.last(), *to)
        return
    if name == LIST:
        typer.echo("\n\n".join(list_lines(DRILLS.values())))
        return
    drills = drills_of(name)
    options = SessionOptions(
        given=None if deployment is None else read_drill_file(deployment, fault_names()),
        replicas=replicas,
        rate_per_s=rate,
        seed=seed,
        is_short=short,
        folder=out,
        command=join(["tidegate", *sys.argv[1:]]),
    )
    period_s = None if every is None else every_s(every)
    with folder.locked():
        raise typer.Exit(_play(drills, options, folder, to, period_s))


def _play(
    drills: Sequence[Drill],
    options: SessionOptions,
    folder: DrillFolder,
    to: tuple[Console, bool],
    period_s: float | None,
) -> int:
    """Once, or again and again; the exit status of the last time."""
    first = datetime.now().astimezone()
    status = _once(drills, options, folder, to)
    while period_s is not None and status != INTERRUPTED:
        at = next_run(first, period_s, datetime.now().astimezone())
        to[0].print(f"next: {at.isoformat(timespec='seconds')}", highlight=False)
        _sleep_until(at)
        status = _once(drills, options, folder, to)
    return status


def drills_of(names: str) -> Sequence[Drill]:
    """One, several with commas, or ``all``. Raises BadParameter for a name that there is not."""
    if names == ALL:
        return [*DRILLS.values()]
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in DRILLS:
            known = suggestion(name, [*DRILLS, ALL]) or f"; there are {', '.join(DRILLS)} and all"
            raise typer.BadParameter(f"no drill is called {name!r}{known}", param_hint="NAME")
    return [DRILLS[name] for name in wanted]


def fault_names() -> frozenset[str]:
    return frozenset(fault for each in DRILLS.values() for fault in each.faults)


def _once(drills: Sequence[Drill], options: SessionOptions, folder: DrillFolder, to: tuple[Console, bool]) -> int:
    console, as_json = to
    session = DrillSession(options, OWN_FAULTS, lambda line: _say(console, line), lambda each: _told(console, each))
    results = session.play(drills)
    files = folder.keep(results)
    _show(results, console, as_json)
    for path in files:
        console.print(f"written: {path}", highlight=False, soft_wrap=True)
    if session.is_interrupted:
        return INTERRUPTED
    return 0 if results.passed else 1


def _show(results: DrillResults, console: Console, as_json: bool) -> None:
    if as_json:
        typer.echo(results.to_json().decode().rstrip())
    else:
        print_results(results, console)


def _say(console: Console, line: str) -> None:
    console.print(
        f"{datetime.now().astimezone():%H:%M:%S} {line}", highlight=False, soft_wrap=True, markup=False, style="dim"
    )


def _told(console: Console, findings: Findings) -> None:
    _say(console, f"{findings.drill}: {word_of(findings)}")


def _sleep_until(at: datetime) -> None:
    """In short steps: a machine that was asleep has lost the time that one long step counts."""
    while (left_s := (at - datetime.now().astimezone()).total_seconds()) > 0:
        time.sleep(min(LOOK_EVERY_S, left_s))
