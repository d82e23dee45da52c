"""``tidegate load map try``: one plan under several sets of live parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Annotated, Any

import typer
from rich.console import Console

from tidegate.cli import load_options as opts
from tidegate.cli.admin_api import AdminApi
from tidegate.cli.live_parameters import LiveParameters
from tidegate.cli.load_options import Amounts
from tidegate.cli.load_play import LoadPlay, default_folder
from tidegate.cli.load_targets import Credentials, targets_of
from tidegate.cli.map_rows import (
    DEFAULT_MAP,
    Card,
    ConfigPath,
    EngineName,
    MapFile,
    Setting,
    Version,
    parameters_of,
    print_rows,
)
from tidegate.cli.options import configured
from tidegate.config.document import scalar
from tidegate.config.flags import set_flags
from tidegate.config.origin import dotted
from tidegate.errors import ConfigError
from tidegate.load.config_diff import merged
from tidegate.load.named_plans import find_plan
from tidegate.load.parameter_map import ParameterMap

MOST_TRIALS = 50


def trial(  # noqa: PLR0913, PLR0917 - a parameter is an option
    url: Annotated[str, typer.Argument(metavar="URL", help="Of a running Tidegate, up to /v1.")],
    tries: Annotated[
        list[str], typer.Option("--try", metavar="KEY=VALUE,VALUE", help="Every combination is tried; repeatable.")
    ],
    admin: Annotated[str, typer.Option("--admin", metavar="URL", help="Its admin port.")],
    plan: opts.PlanText = "steady-load",
    config: ConfigPath = None,
    card: Card = "",
    engine: EngineName = "",
    version: Version = "",
    model: opts.Model = None,
    api_key_env: opts.ApiKeyEnv = None,
    seed: opts.Seed = 1,
    scale: opts.Scale = 1.0,
    time_scale: opts.TimeScale = 1.0,
    max_prompt_tokens: opts.MostPrompt = None,
    max_output_tokens: opts.MostOutput = None,
    out: opts.Out = None,
    file: MapFile = DEFAULT_MAP,
) -> None:
    """Play one plan under every combination of live parameters, keep each in the map, and put all back."""
    trials = combinations(tries)
    found = targets_of([url], Credentials(api_key_env=api_key_env), model, admin)
    amounts = Amounts(
        seed=seed,
        scale=scale,
        time_scale=time_scale,
        max_prompt_tokens=max_prompt_tokens,
        max_output_tokens=max_output_tokens,
    )
    target = found[0][0]
    play = partial(
        LoadPlay, plan=find_plan(plan, amounts.options(found)), targets=[target], console=Console(stderr=True)
    )
    setting = Setting(card=card, engine=engine, version=version)
    settled, folder, map_ = parameters_of(config), out or default_folder(), ParameterMap(file)
    # A map that cannot be read is said before an hour of load, and not behind it.
    map_.rows()
    api, kept = AdminApi("load map", admin, partial(configured, config, None, None)), []
    with LiveParameters(api, [*trials[0]]) as live:
        for number, values in enumerate(trials, start=1):
            live.set(values)
            played = play(
                folder=folder / f"trial-{number}", notes=[f"{key} = {value}" for key, value in values.items()]
            )
            result = played.play()
            if played.is_stopped:
                break
            kept.append(map_.record(setting.entry(result, merged(settled, nested(values)), target.model)))
    print_rows(kept)


def combinations(tries: Sequence[str]) -> list[dict[str, Any]]:
    """Values by dotted key. Raises ConfigError."""
    given = {dotted(path): str(values).split(",") for path, values in set_flags(tries).items()}
    found = [dict(zip(given, map(scalar, values), strict=True)) for values in product(*(given[key] for key in given))]
    if len(found) > MOST_TRIALS:
        raise ConfigError([f"--try: {len(found)} combinations; at most {MOST_TRIALS} are played in one go"])
    return found


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as sections."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        section = value
        for part in reversed(key.split(".")):
            section = {part: section}
        found = merged(found, section)
    return found
