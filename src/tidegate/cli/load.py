"""``tidegate load``: requests as users will send them, and what they would have seen.

``tidegate load URL`` is short for ``tidegate load run URL``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tidegate.cli import load_options as opts
from tidegate.cli.load_knee import knee
from tidegate.cli.load_map import map_
from tidegate.cli.load_options import Amounts
from tidegate.cli.load_play import INVALID, MISSED, LoadPlay, default_folder
from tidegate.cli.load_targets import Credentials, targets_of
from tidegate.cli.options import AsJson, Schema, print_json, print_schema
from tidegate.cli.runs_by_default import RunsByDefault
from tidegate.errors import ConfigError
from tidegate.load.breaking import Climb
from tidegate.load.climbing import climb_until_failure
from tidegate.load.gate_file import find_gates
from tidegate.load.load_run import TURN_S, LoadRun
from tidegate.load.named_plans import PLAN_HELP, find_plan, find_suite
from tidegate.load.plan import Plan
from tidegate.load.result import Result
from tidegate.load.result_file import SCHEMA, read_result, result_json

GatesText = Annotated[
    str | None, typer.Option("--gates", help="acceptance, acceptance@ttft, burst or a file; several with commas.")
]
PlannedRate = Annotated[
    float | None, typer.Option("--planned-rate", help="Requests a second at launch: at most 70 % of the peak passes.")
]
RealPeak = Annotated[
    float | None, typer.Option("--real-peak", help="Of production, requests a second: 1.5 times it must be stable.")
]


def run(  # noqa: PLR0913, PLR0917 - a parameter is an option
    urls: opts.Urls = None,
    plan: opts.PlanText = "three-phase",
    gates: GatesText = None,
    planned_rate: PlannedRate = None,
    real_peak: RealPeak = None,
    model: opts.Model = None,
    header: opts.Header = None,
    api_key_env: opts.ApiKeyEnv = None,
    ca_file: opts.CaFile = None,
    admin: opts.Admin = None,
    suite: Annotated[bool, typer.Option("--suite", help="Every named plan of the evaluation, one seed.")] = False,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="RESULT.json", help="Of an earlier run, shown beside it.")
    ] = None,
    until_failure: Annotated[
        bool, typer.Option("--until-failure", help="More and more users of the plan, until something breaks.")
    ] = False,
    step_s: opts.StepS = 60.0,
    seed: opts.Seed = 1,
    scale: opts.Scale = 1.0,
    time_scale: opts.TimeScale = 1.0,
    max_prompt_tokens: opts.MostPrompt = None,
    max_output_tokens: opts.MostOutput = None,
    context: opts.Context = None,
    processes: opts.Processes = None,
    turn_s: Annotated[float, typer.Option(min=0.1, help="Of each target, where several are compared.")] = TURN_S,
    out: opts.Out = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Send a plan to a service, and say what its users would have seen; this is what load URL means.

    Exit status: 0; 1 where a bar of --gates was missed or could not be judged; 3 where the generator, and not the
    service, was measured.
    """
    if schema:
        print_schema(SCHEMA)
        return
    if not urls:
        raise ConfigError([f"load: {opts.NO_URL}"])
    if until_failure and (suite or len(urls) > 1):
        raise ConfigError(["--until-failure: one service and one plan; each breaks at a load of its own"])
    credentials = Credentials(api_key_env=api_key_env, headers=header or (), ca_file=ca_file)
    amounts = Amounts(
        seed=seed,
        scale=scale,
        time_scale=time_scale,
        max_prompt_tokens=max_prompt_tokens,
        max_output_tokens=max_output_tokens,
        context_tokens=context,
    )
    if gates is not None:
        find_gates(gates)
    earlier = None if against is None else read_result(against)
    found = targets_of(urls, credentials, model, admin)
    wanted = amounts.options(found)
    several = find_suite(wanted) if suite else (find_plan(plan, wanted),)
    folder, console = out or default_folder(), Console(stderr=as_json)
    results = []
    climb = Climb(first_users=opts.FIRST_USERS) if until_failure else None
    for each in several:
        bars = gates or each.notes.get("gates")
        played = LoadPlay(
            plan=with_rates(each, planned_rate, real_peak),
            targets=[target for target, _ in found],
            folder=folder / each.name if suite else folder,
            console=console,
            gates=find_gates(bars) if bars else None,
            processes=processes,
            turn_s=turn_s,
            against=earlier,
            steps=LoadRun.play_all if climb is None else partial(climb_until_failure, climb=climb, step_s=step_s),
            finish=partial(_tell_break, climb=climb),
        )
        results.append(played.play())
        if played.is_stopped:
            break
    if as_json:
        shown = [result_json(result).decode() for result in results]
        typer.echo(f"[{','.join(shown)}]" if suite else shown[0].rstrip())
    raise typer.Exit(max(map(status_of, results)))


def _tell_break(result: Result, climb: Climb | None) -> None:
    if climb is not None:
        result.break_point = climb.told()
        result.notes.append(f"break point: {result.break_point['why']}")


def with_rates(plan: Plan, planned_per_s: float | None, peak_per_s: float | None) -> Plan:
    """What some bars are held against."""
    told = {"planned_rate_per_s": planned_per_s, "real_peak_per_s": peak_per_s}
    return replace(
        plan, notes={**plan.notes, **{key: f"{value:g}" for key, value in told.items() if value is not None}}
    )


def status_of(result: Result) -> int:
    if result.invalid:
        return INVALID
    return MISSED if result.passed is False else 0


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
