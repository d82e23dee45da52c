"""``tidegate explain``: what is configured and why, one key, or what became of one request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from tidegate.cli.build import build
from tidegate.cli.engine_commands import engine_commands
from tidegate.cli.explain_key import explain_key
from tidegate.cli.explain_pools import FIELDS as POOL_FIELDS
from tidegate.cli.explain_pools import pool_lines, pools_plain
from tidegate.cli.explain_request import explain_request
from tidegate.cli.options import AsJson, ConfigFile, Schema, Sets, Upstreams, configured, print_json, print_schema
from tidegate.config import Settings, slot_plans, timeout_tree
from tidegate.config.gates import Gates, gates_of
from tidegate.config.origin import dotted
from tidegate.config.reload import shown
from tidegate.config.section import plain
from tidegate.config.slot_plan import SlotPlan, allocation_lines
from tidegate.config.tree import leaves

FIELDS = {
    "build": "which build of Tidegate this is: compiled, or pure Python",
    "file": "the YAML that was read; null when there was none",
    "warnings": "what works, but perhaps not as meant",
    "values[]": "every key: key, value, origin (default, preset, file, env, alias, flag, stability.json, mode), place",
    "timeouts": "the timeout tree: name, longest_s (null: no limit of its own), rule, key, children; "
    "a child cannot outlast its parent",
    "replicas[]": "slot arithmetic and gates of each replica; null stands for what only the engine can tell",
    "replicas[].pool_tokens": "KV memory in tokens",
    "replicas[].slot_tokens": "size of one slot in tokens",
    "replicas[].slots": "pool_tokens / slot_tokens, rounded down",
    "replicas[].asked_sequences": "as configured, or as the embedded engine has them",
    "replicas[].sequences": "what is really given: at most as many as there are slots",
    "replicas[].recommended_sequences": "80 % of the slots, rounded down",
    "replicas[].command": "of a vLLM that Tidegate starts; else null",
    "replicas[].gates": "requests of prompt_tokens + output_tokens that each gate lets run at once; "
    "binds names the gate that stops first",
    **POOL_FIELDS,
}


def explain(  # noqa: PLR0913, PLR0917  # Typer wants one parameter for each option
    what: Annotated[str | None, typer.Argument(help="A key, or the word: request.")] = None,
    request_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="x-request-id of a response.")] = None,
    config: ConfigFile = None,
    upstream: Upstreams = None,
    sets: Sets = None,
    prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Size of the request the gates are shown for. Default: the class border.")
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option(min=1, help="Its answer. Default: slots.default_max_tokens.")
    ] = None,
    admin: Annotated[
        str | None, typer.Option(metavar="URL", help="Admin API of the running gateway. Default: as configured.")
    ] = None,
    as_json: AsJson = False,
    schema: Schema = False,
) -> None:
    """Say what is configured and why, or what became of one request.

    explain: the effective configuration with the origin of each value, the timeout tree, the slots
    of each replica and the gate that binds.
    explain KEY: one parameter.
    explain request ID: why a request waited, moved or was refused.
    """
    if schema:
        print_schema(FIELDS)
        return
    read = partial(configured, config, upstream, sets)
    if what == "request":
        explain_request(request_id, read, admin, as_json)
        return
    if what is not None:
        explain_key(what, read, as_json)
        return
    settings = read()
    sizes = (
        prompt_tokens or settings.shaping.long_threshold_tokens,
        output_tokens or settings.slots.default_max_tokens,
    )
    plans = [(plan, gates_of(plan, settings, *sizes)) for plan in slot_plans(settings)]
    commands = engine_commands(settings)
    if as_json:
        print_json(_plain(settings, plans, commands))
    else:
        _print(settings, plans, commands)


def _values(settings: Settings) -> list[dict[str, Any]]:
    return [
        {
            "key": dotted(path),
            "value": shown(settings, path, value),
            "origin": settings.origin(path).kind.value,
            "place": settings.origin(path).place(),
        }
        for path, value in leaves(plain(settings))
    ]


def _plain(settings: Settings, plans: list[tuple[SlotPlan, Gates]], commands: Mapping[str, str]) -> dict[str, Any]:
    return {
        "build": build(),
        "file": None if settings.file is None else str(settings.file),
        "warnings": list(settings.warnings),
        "values": _values(settings),
        "timeouts": timeout_tree(settings).plain(),
        "replicas": [
            {**_plan_plain(plan), "command": commands.get(plan.replica), "gates": gates.plain()}
            for plan, gates in plans
        ],
        "pools": pools_plain(settings),
    }


def _plan_plain(plan: SlotPlan) -> dict[str, Any]:
    names = (
        "replica",
        "upstream",
        "pool_tokens",
        "slot_tokens",
        "bytes_per_token",
        "slots",
        "asked_sequences",
        "sequences",
        "recommended_sequences",
        "context_tokens",
    )
    return {name: getattr(plan, name) for name in names}


def _print(settings: Settings, plans: list[tuple[SlotPlan, Gates]], commands: Mapping[str, str]) -> None:
    for warning in settings.warnings:
        typer.echo(f"WARN {warning}", err=True)
    typer.echo(f"Configuration ({settings.file or 'no file'}), {build()} build\n")
    values = _values(settings)
    width = max(len(each["key"]) for each in values)
    for each in values:
        place = each["place"] or each["origin"]
        typer.echo(f"  {each['key']:<{width}}  {_text(each['value']):<20} {place}")
    typer.echo("\nTimeouts (a child cannot outlast its parent)\n")
    for line in timeout_tree(settings).lines("  ", "  "):
        typer.echo(line)
    typer.echo("\nSlots and gates\n" if plans else "\nNo upstream: nothing to reserve memory on.")
    for plan, gates in plans:
        typer.echo("\n".join(f"  {line}" for line in _plan_lines(plan, settings)))
        typer.echo(f"  {gates.words()}")
        if plan.replica in commands:
            typer.echo(f"  {plan.replica}: {commands[plan.replica]}")
    if settings.pools:
        typer.echo("\nMemory that models share\n")
        typer.echo("\n".join(f"  {line}" for line in pool_lines(settings)))


def _plan_lines(plan: SlotPlan, settings: Settings) -> list[str]:
    if not settings.slots.enabled:
        return [f"{plan.replica}: slots are off"]
    lines = [f"{plan.replica}: {allocation_lines(plan)[0]}"]
    if plan.slots is not None:
        lines.append(
            f"{plan.replica}: {plan.pool_tokens} tokens ÷ {plan.slot_tokens} = {plan.slots} slots; "
            f"recommended sequences {plan.recommended_sequences} (80 %), given {plan.sequences}"
        )
    return lines


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "-"
    return "none" if value in ([], {}) else str(value)
