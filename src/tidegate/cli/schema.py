"""``tidegate schema``: what an editor needs to complete and check ``tidegate.yaml``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tidegate.config.json_schema import json_schema
from tidegate.config.table import markdown_table


def schema(
    table: Annotated[bool, typer.Option("--table", help="Print the table of docs/configuration.md instead.")] = False,
) -> None:
    """Print the JSON Schema of tidegate.yaml.

    Save it, and name it in the YAML's first line:
    # yaml-language-server: $schema=tidegate.schema.json
    """
    typer.echo(markdown_table() if table else json.dumps(json_schema(), indent=2))
