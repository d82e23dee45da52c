"""``tidegate simulate``: a named scenario on virtual engines, under one policy or several."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidegate.cli.options import AsJson, Schema, print_json, print_schema
from tidegate.errors import ConfigError
from tidegate.simulate.report import SCHEMA, report
from tidegate.simulate.run import Run
from tidegate.simulate.run import simulate as simulate_run
from tidegate.simulate.scenarios import SCENARIO_HELP
from tidegate.simulate.summary import medians

SEVERAL = {
    "runs[]": "with more than one run: every run as above, by policy, then seed",
    "medians[]": "with more than one run: per policy, field by field, the median over the seeds",
}


def simulate(
    scenario: Annotated[str | None, typer.Argument(help="NAME or NAME@ARGUMENT; without one, the list.")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help="native[:zombie|:contiguous], tidegate[:slo+learned+isolated], or what others do: cap:TOKENS, "
            "static:N, smg[:N], gradient2, llm-d[:shed], least-tokens, bound[:tokens|:blind|:fluid]. Repeatable. Default: native and tidegate.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal traffic under every policy.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Run so many seeds, from --seed on, and show medians.")] = 1,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Run a scenario on virtual engines and a virtual clock.

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
    runs = [simulate_run(scenario, name, each) for name in policies for each in range(seed, seed + seeds)]
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
