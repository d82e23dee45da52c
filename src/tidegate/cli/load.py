"""``tidegate load``: requests as users will send them, and what they would have seen.

``tidegate load URL`` is short for ``tidegate load run URL``.
"""

from __future__ import annotations

import typer

from tidegate.cli.load_knee import knee
from tidegate.cli.load_map import map_
from tidegate.cli.load_run import run
from tidegate.cli.options import AsJson, print_json
from tidegate.cli.runs_by_default import RunsByDefault
from tidegate.load.named_plans import PLAN_HELP


def plans(as_json: AsJson = False) -> None:
    """List the plans that have names."""
    if as_json:
        print_json({"plans": PLAN_HELP})
        return
    width = max(map(len, PLAN_HELP))
    typer.echo("\n".join(f"{name:<{width}}  {text}" for name, text in PLAN_HELP.items()))


load = typer.Typer(
    cls=RunsByDefault,
    rich_markup_mode=None,
    help="Prove a service before users do. tidegate load URL sends a plan to it.",
)
load.command("run")(run)
load.command("knee")(knee)
load.add_typer(map_, name="map")
load.command("plans")(plans)
