"""``tidegate check``: every mistake of a configuration at once, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.cli.engine_commands import engine_commands
from tidegate.cli.options import AsJson, Schema, Sets, Upstreams, configured, print_json, print_schema
from tidegate.config import Settings, slot_plans
from tidegate.config.origin import Kind
from tidegate.config.section import plain
from tidegate.config.tree import leaves
from tidegate.errors import ConfigError

FIELDS = {
    "ok": "true: tidegate serve would accept this configuration",
    "file": "the YAML that was read; null when there was none",
    "problems": "one line per mistake, file:line:col: key: message",
    "warnings": "what works, but perhaps not as meant",
    "summary": "what the configuration amounts to; null when it has problems",
    "summary.mode": "production or dev",
    "summary.data": "address of the OpenAI API",
    "summary.admin": "address of metrics and admin API",
    "summary.upstreams": "model name to its replicas: name, URL or engine, slots, sequences (null: not known yet), "
    "command (of a vLLM that is started; else null)",
    "summary.off": "sections that are switched off",
    "summary.set": "number of values set by preset, file, env, alias, flag, stability.json and mode",
}


def check(
    file: Annotated[Path | None, typer.Argument(help="The YAML. Default: tidegate.yaml here.")] = None,
    upstream: Upstreams = None,
    sets: Sets = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Find every mistake in the configuration.

    Exit status 0 when tidegate serve would accept it, else 1.
    """
    if schema:
        print_schema(FIELDS)
        return
    try:
        settings = configured(file, upstream, sets)
        commands = engine_commands(settings)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"ok": False, "file": _name(file), "problems": error.problems, "warnings": [], "summary": None})
        raise typer.Exit(1) from None
    if as_json:
        print_json(
            {
                "ok": True,
                "file": _name(settings.file),
                "problems": [],
                "warnings": list(settings.warnings),
                "summary": summary(settings, commands),
            }
        )
        return
    for warning in settings.warnings:
        typer.echo(f"WARN {warning}", err=True)
    typer.echo("\n".join(_lines(settings, commands)))


def _name(file: Path | None) -> str | None:
    return None if file is None else str(file)


def summary(settings: Settings, commands: Mapping[str, str]) -> dict[str, Any]:
    """What the configuration amounts to. ``commands``: of the engines that are started with one, by replica."""
    return {
        "mode": settings.mode,
        "data": f"{settings.server.host}:{settings.server.port}",
        "admin": f"{settings.server.admin_host}:{settings.server.admin_port}",
        "upstreams": _upstreams(settings, commands),
        "off": switched_off(settings),
        "set": _counts(settings),
    }


def _upstreams(settings: Settings, commands: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {alias: [] for alias in settings.upstreams}
    for plan in slot_plans(settings):
        upstream = settings.upstreams[plan.upstream]
        position = plan.path[-1]
        kind = "" if upstream.engine is None else upstream.engine.kind
        where = f"{upstream.replicas[position].url}" if isinstance(position, int) else f"{kind} engine"
        found[plan.upstream].append(
            {
                "name": plan.replica,
                "at": where,
                "slots": plan.slots,
                "sequences": plan.sequences,
                "command": commands.get(plan.replica),
            }
        )
    return found


def switched_off(settings: Settings) -> list[str]:
    """Every ``enabled`` that somebody set to false; what is off by itself is no news."""
    return [
        ".".join(map(str, path[:-1]))
        for path, value in leaves(plain(settings))
        if path[-1] == "enabled" and value is False and settings.origin(path).kind is not Kind.DEFAULT
    ]


def _counts(settings: Settings) -> dict[str, int]:
    kinds = [settings.origin(path).kind for path, _ in leaves(plain(settings))]
    return {kind.value: kinds.count(kind) for kind in Kind if kind is not Kind.DEFAULT}


def _lines(settings: Settings, commands: Mapping[str, str]) -> list[str]:
    told = summary(settings, commands)
    counted = ", ".join(f"{count} by {kind}" for kind, count in told["set"].items() if count)
    lines = [f"ok: {settings.file or 'no file'} ({counted or 'all defaults'})"]
    lines.append(f"mode {settings.mode}; API on http://{told['data']}, admin on http://{told['admin']}")
    if told["off"]:
        lines.append(f"off: {', '.join(told['off'])}")
    for alias, replicas in told["upstreams"].items():
        lines += [f"{alias}: {_replica_line(each)}" for each in replicas]
    if not settings.upstreams:
        lines.append("no upstream: tidegate serve starts the small engine and model that come with it")
    return lines


def _replica_line(replica: dict[str, Any]) -> str:
    slots = "slots not known yet" if replica["slots"] is None else f"{replica['slots']} slots"
    sequences = "" if replica["sequences"] is None else f", {replica['sequences']} sequences"
    command = f"\n  {replica['command']}" if replica["command"] else ""
    return f"{replica['name']} at {replica['at']}, {slots}{sequences}{command}"
