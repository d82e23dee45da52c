"""The commands of the vLLM servers that a configuration amounts to, for people to read."""

from __future__ import annotations

import shlex

from tidegate.cli.vllm_recipe import command_of
from tidegate.config import Settings, slot_plans
from tidegate.config.origin import dotted
from tidegate.config.started_engines import Vllm
from tidegate.errors import ConfigError, EngineError


def engine_commands(settings: Settings) -> dict[str, str]:
    """By replica, with the word PORT for the port, which is chosen at the start. Keys do not stand in it.

    Runs each engine's interpreter to ask for its vLLM. Raises ConfigError with every engine that could not start.
    """
    found, problems = {}, []
    for plan in slot_plans(settings):
        engine = settings.upstreams[plan.upstream].engine
        if plan.path[-1] != "engine" or not isinstance(engine, Vllm):
            continue
        try:
            command = command_of(plan.upstream, engine, plan)
        except EngineError as error:
            problems.append(f"{dotted(plan.path)}: {error}")
            continue
        words = ["PORT" if word == str(command.port) else word for word in command.arguments()]
        found[plan.replica] = shlex.join(words)
    if problems:
        raise ConfigError(problems)
    return found
