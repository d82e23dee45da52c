"""``tidegate simulate``: a named scenario on virtual engines, under one policy or several.

``tidegate simulate SCENARIO`` is short for ``tidegate simulate run SCENARIO``.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidegate.cli.options import AsJson, Schema, print_json, print_schema
from tidegate.cli.runs_by_default import RunsByDefault
from tidegate.cli.simulate_calibrate import calibrate_command
from tidegate.cli.simulate_compare import compare
from tidegate.errors import ConfigError
from tidegate.simulate.report import SCHEMA, report
from tidegate.simulate.run import Run
from tidegate.simulate.scenarios import SCENARIO_HELP
from tidegate.simulate.summary import medians
from tidegate.simulate.sweep import runs_of

SEVERAL = {
    "runs[]": "with more than one run: every run as above, by policy, then seed",
    "medians[]": "with more than one run: per policy, field by field, the median over the seeds",
}
POLICY_HELP = (
    "native[:zombie|:contiguous], tidegate[:slo+learned+KEY=VALUE+...], or what others do: cap:TOKENS, cap:sweep (the "
    "best one, found by trying), static:N, smg[:N], gradient2, llm-d[:shed], least-tokens, hashed, "
    "bound[:tokens|:blind|:fluid]."
)


def run(
    scenario: Annotated[str | None, typer.Argument(help="NAME or NAME@ARGUMENT; without one, the list.")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", "-p", help=f"{POLICY_HELP} Repeatable. Default: native and tidegate."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal traffic under every policy.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Run so many seeds, from --seed on, and show medians.")] = 1,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Run a scenario on virtual engines and a virtual clock; this is what simulate SCENARIO means.

    Step times come from a model of the engine; no engine and no GPU is used. Trace scenarios read the
    folder named by TIDEGATE_TRACES, and without it play a generated look-alike.
    """
    if schema:
        print_schema(SCHEMA | SEVERAL)
        return
    if scenario is None:
        _print_scenarios(as_json)
        return
    policies = policy or ["native", "tidegate"]
    if len(set(policies)) < len(policies):
        raise ConfigError(["--policy: the same policy is named twice"])
    runs = [each for name in policies for each in runs_of(scenario, name, range(seed, seed + seeds))]
    if as_json:
        print_json(_plain(runs))
    else:
        # The table needs rich, which takes longer to import than a small scenario to run.
        from tidegate.cli.simulate_table import print_runs  # noqa: PLC0415  # see above

        print_runs(runs)


def _plain(runs: list[Run]) -> dict[str, Any]:
    reports = [report(run) for run in runs]
    if len(reports) == 1:
        return reports[0]
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in reports:
        groups.setdefault(each["policy"], []).append(each)
    return {"runs": reports, "medians": [medians(group) for group in groups.values()]}


def _print_scenarios(as_json: bool) -> None:
    if as_json:
        print_json({"scenarios": SCENARIO_HELP})
        return
    width = max(map(len, SCENARIO_HELP))
    typer.echo("\n".join(f"{name:<{width}}  {help_text}" for name, help_text in SCENARIO_HELP.items()))


simulate = typer.Typer(
    cls=RunsByDefault,
    rich_markup_mode=None,
    help="Play scenarios on virtual engines and a virtual clock. tidegate simulate SCENARIO runs one.",
)
simulate.command("run")(run)
simulate.command("compare")(compare)
simulate.command("calibrate")(calibrate_command)
