"""``tidegate explain KEY``: one parameter, or the keys of one section."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import typer

from tidegate.cli.options import print_json
from tidegate.config import Settings
from tidegate.config.environment import ALIASES, PREFIX
from tidegate.config.flags import FLAGS, path_from
from tidegate.config.origin import Path as KeyPath
from tidegate.config.origin import dotted
from tidegate.config.parameters import Parameter, parameters
from tidegate.config.problem import suggestion
from tidegate.config.reload import shown
from tidegate.config.section import plain
from tidegate.config.table import default_text
from tidegate.config.tree import Tree
from tidegate.errors import ConfigError


def explain_key(key: str, read: Callable[[], Settings], as_json: bool) -> None:
    """Print one parameter, or every key below a section. Raises ConfigError for a key there is none of."""
    wanted = dotted(ALIASES[key]) if key in ALIASES else key
    found = matching(wanted)
    if not found:
        near = suggestion(wanted, [each.key for each in parameters(Settings)])
        raise ConfigError([f"{key}: no such key{near}; tidegate explain lists all of them"])
    current = _current(wanted, read) if len(found) == 1 else {}
    if as_json:
        print_json({"parameters": [{**_plain(each), **current} for each in found]})
    elif len(found) == 1:
        typer.echo("\n".join(_lines(found[0], current)))
    else:
        width = max(len(each.key) for each in found)
        for each in found:
            of_kind = f"({each.of_kind}) " if each.of_kind else ""
            typer.echo(f"{each.key:<{width}}  {default_text(each):<12}  {of_kind}{each.meaning}")


def matching(key: str) -> list[Parameter]:
    """The parameter a key names, or all that stand below a section.

    Indexes and chosen names match the index's ``[]`` and ``<name>``.
    """
    every = parameters(Settings)
    plain_key = re.sub(r"\[\d+\]", "[]", key)
    exact = [each for each in every if _matches(each.key, plain_key)]
    return exact or [each for each in every if each.key.startswith((f"{plain_key}.", f"{plain_key}[]"))]


def _matches(known: str, key: str) -> bool:
    pattern = re.escape(known).replace("<name>", r"(<name>|.+)")
    return re.fullmatch(pattern, key) is not None


def _current(key: str, read: Callable[[], Settings]) -> dict[str, Any]:
    """The key's value in the configuration at hand; empty when that has problems or no such entry."""
    try:
        settings = read()
    except ConfigError:
        return {}
    tree = Tree()
    tree.values = plain(settings)
    path = path_from(key)
    if tree.get(path) is None:
        return {}
    origin = settings.origin(path)
    return {"value": shown(settings, path, tree.get(path)), "place": origin.place() or origin.kind.value}


def _plain(each: Parameter) -> dict[str, Any]:
    fields = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    return {**fields, "default": None if each.required else each.default, "required": each.required}


def _lines(each: Parameter, current: dict[str, Any]) -> list[str]:
    lines = [each.key, f"  {each.meaning}", f"  type     {each.type}"]
    if each.range:
        lines.append(f"  range    {each.range}")
    lines.append(f"  default  {default_text(each)}")
    if current:
        lines.append(f"  here     {current['value']} ({current['place']})")
    lines += [f"  set by   {each_way}" for each_way in _ways(each.key)]
    if each.spec:
        lines.append(f"  rows     {', '.join(each.spec)}")
    return lines


def _ways(key: str) -> list[str]:
    """Every way to set a key, the strongest first."""
    path: KeyPath = path_from(key)
    variable = PREFIX + key.replace("[]", ".0").replace(".", "__").upper()
    flag = FLAGS.get(path, f"--set {key}=VALUE")
    aliases = [name for name, target in ALIASES.items() if target == path]
    return [flag, variable, *aliases, "the YAML"]
