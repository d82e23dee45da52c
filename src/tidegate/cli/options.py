"""Options that several commands share, and the configuration they name."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.settled import settled
from tidegate.config import Settings, load, set_flags, upstream_flags
from tidegate.config.flags import Overrides

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="The YAML. Default: tidegate.yaml here, or none.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set one key; repeatable. Beats all other sources."),
]
Upstreams = Annotated[
    list[str] | None,
    typer.Option("--upstream", metavar="[NAME=]URL", help="An engine, instead of a YAML; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Schema = Annotated[bool, typer.Option("--schema", help="Say what each field of the JSON means, and exit.")]


def configured(
    config: Path | None,
    upstreams: Sequence[str] | None,
    sets: Sequence[str] | None,
    live: Overrides | None = None,
    **flags: object,
) -> Settings:
    """Settings from all layers; ``flags`` are dotted keys with ``__`` for the dot, None for not given.

    ``configured(None, None, None, server__port=9000)``. ``live``: what an operator set while the service runs. Raises
    ConfigError.
    """
    overrides: dict[tuple[str | int, ...], object] = dict(upstream_flags(upstreams or ()))
    overrides.update({tuple(key.split("__")): value for key, value in flags.items() if value is not None})
    overrides.update(set_flags(sets or ()))
    return settled(load(config, overrides, os.environ, live=live))


def print_json(value: Any) -> None:
    """One object, one line end."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_schema(fields: dict[str, str]) -> None:
    """What ``--schema`` prints: each field of the JSON with its meaning."""
    print_json({"fields": fields})
