"""``tidegate load map``: every set of parameters with its load test, looked up and compared (SPEC S3-61)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tidegate.cli.load_play import MISSED
from tidegate.cli.load_trial import trial
from tidegate.cli.map_rows import (
    DEFAULT_MAP,
    Card,
    ConfigPath,
    EngineName,
    MapFile,
    Note,
    Setting,
    Version,
    config_text,
    parameters_of,
    print_rows,
)
from tidegate.cli.options import AsJson, print_json
from tidegate.errors import ConfigError
from tidegate.load.config_diff import config_diff
from tidegate.load.figure_bar import figure_text
from tidegate.load.parameter_map import Change, ParameterMap, compare
from tidegate.load.result_file import read_result
from tidegate.load.summary_table import bars_table
from tidegate.load.upgrade_gate import upgrade_verdicts
from tidegate.load.wish import EXAMPLE, read_wish

Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="NAME=PATTERN", help="model, card, engine, workload … or a parameter; repeatable."),
]


def add(  # noqa: PLR0913, PLR0917 - a parameter is an option
    result: Annotated[Path, typer.Argument(metavar="RESULT.json", help="Of a load run.")],
    model: Annotated[str, typer.Option("--model", help="That was served.")],
    config: ConfigPath = None,
    card: Card = "",
    engine: EngineName = "",
    version: Version = "",
    note: Note = "",
    file: MapFile = DEFAULT_MAP,
) -> None:
    """Keep a run that is over, with the parameters that were in force."""
    setting = Setting(card=card, engine=engine, version=version, note=note)
    entry = setting.entry(read_result(result), parameters_of(config), model)
    typer.echo(f"{ParameterMap(file).record(entry).id}  in {file}")


def show(where: Where = None, file: MapFile = DEFAULT_MAP, as_json: AsJson = False) -> None:
    """List what was tried, oldest first."""
    rows = ParameterMap(file).rows(filters_of(where))
    if as_json:
        print_json({"rows": [msgspec.to_builtins(row) for row in rows]})
        return
    print_rows(rows)


def compared(
    before: Annotated[str, typer.Argument(metavar="ID", help="Its first characters are enough.")],
    after: Annotated[str, typer.Argument(metavar="ID")],
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Exit status 1 where a figure of the second is worse (by over 10 %).")
    ] = False,
    file: MapFile = DEFAULT_MAP,
    as_json: AsJson = False,
) -> None:
    """Say what differs between two rows: parameters, what they ran on, figures."""
    rows = ParameterMap(file)
    first, second = rows.row(before), rows.row(after)
    change = compare(first, second)
    verdicts = upgrade_verdicts(first, second) if upgrade else []
    if as_json:
        told = {"params": change.params, "about": change.about, "figures": change.figures}
        print_json({**told, "verdicts": [asdict(each) for each in verdicts]})
    else:
        _print_change(change, before, after)
        if verdicts:
            Console().print(bars_table(verdicts))
    raise typer.Exit(0 if all(each.passed for each in verdicts) else MISSED)


def _print_change(change: Change, before: str, after: str) -> None:
    console = Console()
    for title, pairs in (("what it ran on", change.about), ("parameters", change.params)):
        for name, (old, new) in pairs.items():
            console.print(f"{title}: {name}: {old} -> {new}", markup=False, highlight=False)
    table = Table("figure", before, after, "ratio", box=None, header_style="bold")
    for name, (first, second) in change.figures.items():
        figure = name.partition(": ")[2]
        ratio = f"{second / first:.2f}" if first else "–"
        table.add_row(name, figure_text(figure, first), figure_text(figure, second), ratio)
    console.print(table)


def suggest(
    objective: Annotated[str, typer.Option("--objective", help=f"Such as: {EXAMPLE}")],
    config: ConfigPath = None,
    where: Where = None,
    phase: Annotated[str, typer.Option("--phase", help="Whose figures count. Default: the soak, else the last.")] = "",
    file: MapFile = DEFAULT_MAP,
    as_json: AsJson = False,
) -> None:
    """Name the best set of parameters, as a diff to a configuration that is there. Exit status 1: none grants it."""
    wish, rows = read_wish(objective), ParameterMap(file)
    best = rows.suggest(wish, filters_of(where), phase)
    if not best:
        told = [f"{row.id}: {wish.missed(row, phase)}" for row in rows.rows(filters_of(where))]
        raise ConfigError([f"{file}: no row grants {objective!r}", *told])
    text = "" if config is None else config_text(config)
    diff = config_diff(text, best[0].params, "tidegate.yaml" if config is None else config.name)
    if as_json:
        print_json({"best": msgspec.to_builtins(best[0]), "others": [row.id for row in best[1:]], "diff": diff})
        return
    print_rows(best[:5])
    typer.echo(diff or "the configuration has these parameters already", nl=not diff)


def filters_of(where: Sequence[str] | None) -> dict[str, str]:
    """Raises ConfigError."""
    pairs = [each.partition("=") for each in where or ()]
    wrong = [f"--where {name}: must be NAME=PATTERN" for name, equals, _ in pairs if not equals]
    if wrong:
        raise ConfigError(wrong)
    return {name: pattern for name, _, pattern in pairs}


map_ = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Sets of parameters with their load tests.")
map_.command("try")(trial)
map_.command("add")(add)
map_.command("show")(show)
map_.command("compare")(compared)
map_.command("suggest")(suggest)
