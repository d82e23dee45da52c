"""``tidegate load knee``: where latency starts to degrade, and the limit that follows."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from tidegate.cli import load_options as opts
from tidegate.cli.load_options import Amounts
from tidegate.cli.load_play import INVALID, MISSED, LoadPlay, default_folder
from tidegate.cli.load_targets import Credentials, targets_of
from tidegate.cli.options import AsJson
from tidegate.errors import ConfigError
from tidegate.load.climbing import play_steps
from tidegate.load.knee import knee_text, knees
from tidegate.load.load_run import TURN_S
from tidegate.load.named_plans import find_plan
from tidegate.load.result import Result
from tidegate.load.result_file import result_json

STEPS = "1,2,4,8,16,32,64"


def knee(  # noqa: PLR0913, PLR0917 - a parameter is an option
    urls: opts.Urls = None,
    plan: opts.PlanText = "three-phase",
    users: Annotated[str, typer.Option("--users", help="Steps, from light load to overload.")] = STEPS,
    step_s: opts.StepS = 60.0,
    model: opts.Model = None,
    header: opts.Header = None,
    api_key_env: opts.ApiKeyEnv = None,
    ca_file: opts.CaFile = None,
    admin: opts.Admin = None,
    seed: opts.Seed = 1,
    max_prompt_tokens: opts.MostPrompt = None,
    max_output_tokens: opts.MostOutput = None,
    context: opts.Context = None,
    processes: opts.Processes = None,
    out: opts.Out = None,
    as_json: AsJson = False,
) -> None:
    """Hold one number of users after the other, and find where more of them bring longer waits and no more answers.

    The limit is 0.8 of that. Exit status: 1 where the steps show no knee, 3 where the generator was measured.
    """
    if not urls:
        raise ConfigError([f"load knee: {opts.NO_URL}"])
    steps = steps_of(users)
    found = targets_of(urls, Credentials(api_key_env=api_key_env, headers=header or (), ca_file=ca_file), model, admin)
    amounts = Amounts(
        seed=seed, max_prompt_tokens=max_prompt_tokens, max_output_tokens=max_output_tokens, context_tokens=context
    )
    console = Console(stderr=as_json)
    result = LoadPlay(
        plan=find_plan(plan, amounts.options(found)),
        targets=[target for target, _ in found],
        folder=out or default_folder(),
        console=console,
        processes=processes,
        turn_s=max(TURN_S, step_s),
        steps=partial(play_steps, users=steps, step_s=step_s),
        finish=_tell,
    ).play()
    if as_json:
        typer.echo(result_json(result), nl=False)
    if result.invalid:
        raise typer.Exit(INVALID)
    raise typer.Exit(0 if all(each["is_found"] for each in result.knee.values()) else MISSED)


def steps_of(text: str) -> list[int]:
    """``1,2,4``. Raises ConfigError."""
    try:
        steps = [int(each) for each in text.split(",")]
    except ValueError:
        steps = []
    if not steps or min(steps) < 1:
        raise ConfigError([f"--users {text}: expected numbers of users with commas between them, such as {STEPS}"])
    return steps


def _tell(result: Result) -> None:
    several = len(result.targets) > 1
    for target, found in knees(result.phases).items():
        result.notes.append(f"{target}: {knee_text(found)}" if several else knee_text(found))
