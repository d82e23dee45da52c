"""``tidegate simulate compare``: policies side by side, at one load or several, as a table and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.options import AsJson, Schema, print_json, print_schema
from tidegate.errors import ConfigError
from tidegate.simulate import comparison, page
from tidegate.simulate.comparison import Comparison
from tidegate.simulate.over_seeds import SCHEMA as OVER_SEEDS
from tidegate.simulate.report import SCHEMA

FIELDS = {
    "scenarios": "as they were named; NAME@1,2,3 names three",
    "policies": "in the order in which they were asked for",
    "seeds": "which ones; every figure below is a median over them",
    "simulated": "always true: step times come from a model, no engine ran",
    "source": "where arrivals and lengths come from",
    "notes": "by scenario, figures computed for it with the first seed",
    "rows[]": "one for each scenario and policy: scenario, policy, load (the number after the @, null where there is "
    "none), and figures as tidegate simulate --schema defines them: ",
    "plot": "the file that --plot wrote, or null",
}
DEFAULT = "native,tidegate,tidegate:slo,cap:sweep,bound"


def compare(
    scenario: Annotated[str | None, typer.Argument(help="NAME, NAME@ARGUMENT, or several: NAME@0.8,1,2.")] = None,
    policies: Annotated[str, typer.Option("--policies", "-p", help="Separated by commas.")] = DEFAULT,
    seed: Annotated[int, typer.Option(help="The first one. Equal seeds give equal traffic.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="So many; figures are medians over them.")] = 3,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.html|.svg", help="Write the pictures into one file.")
    ] = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Play one scenario, or one at several loads, under several policies, with the same traffic for all.

    Several loads give curves over the load; two kinds of requests with objectives of their own give a frontier.
    """
    if schema:
        beside = "".join(f"; and {name}: {meaning}" for name, meaning in OVER_SEEDS.items())
        print_schema(FIELDS | {"rows[]": FIELDS["rows[]"] + ", ".join(SCHEMA) + beside})
        return
    if scenario is None:
        raise ConfigError(["simulate compare: name a scenario; tidegate simulate lists them"])
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ConfigError([f"--policies {policies}: name each policy once, separated by commas"])
    if plot is not None:
        page.check_kind(plot)
    found = comparison.compare(scenario, names, range(seed, seed + seeds), _tell)
    # The table needs rich, which --json does without.
    from tidegate.cli.comparison_table import COLUMNS, print_comparison  # noqa: PLC0415  # see above

    if plot is not None:
        page.write(found, plot, COLUMNS)
    if as_json:
        print_json(_plain(found, plot))
    else:
        print_comparison(found, plot)


def _tell(what: str) -> None:
    typer.echo(f"playing {what}", err=True)


def _plain(found: Comparison, plot: Path | None) -> dict[str, Any]:
    return {
        "scenarios": found.scenarios,
        "policies": found.policies,
        "seeds": [*found.seeds],
        "simulated": True,
        "source": found.source,
        "notes": found.notes,
        "rows": [
            {"scenario": cell.scenario, "policy": cell.policy, "load": cell.load, "figures": cell.figures}
            for cell in found.cells
        ],
        "plot": None if plot is None else str(plot),
    }
