"""``config/stability.json``: the one object of the described middleware that is accepted (SPEC S0-43 to S0-48)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.config.document import Document, read_document
from tidegate.config.origin import Kind, Path
from tidegate.config.problem import Problem, suggestion
from tidegate.config.tree import Tree

FILE = "config/stability.json"
SECTION = "tail_latency"
KEYS: Mapping[str, Path] = {
    "enabled": ("tail", "enabled"),
    "base_multiplier": ("tail", "timeouts", "multiplier"),
    "window_seconds": ("marks", "window_s"),
    "trigger_count": ("marks", "trigger_count"),
    "degrade_action": ("ladder", "order"),
    "light_model": ("ladder", "light_model"),
}
ACTIONS: Mapping[str, str] = {"cache_fallback": "cache", "light_model": "light_model", "error_response": "error"}
"""Rungs of the ladder. The described file names no model for ``light_model``, so we take a key of that name beside
``degrade_action``, which may also be a list of actions in the order in which they are tried (SPEC S0-48)."""


def read_stability(text: str, source: str) -> Document:
    """The file's ``tail_latency`` under our own keys; other objects in it are not ours and are left alone."""
    theirs = read_document(text, source)
    found = theirs.values.get(SECTION, {})
    ours = Document(problems=theirs.problems)
    if not isinstance(found, dict):
        ours.problems.append(Problem((), "must be an object", place=theirs.origins[(SECTION,)].place(), name=SECTION))
        return ours
    tree = Tree()
    for key, value in found.items():
        origin = replace(theirs.origins[(SECTION, key)], kind=Kind.STABILITY, written_as=f"{SECTION}.{key}")
        if key not in KEYS:
            ours.problems.append(
                Problem(
                    (), f"unknown key{suggestion(key, KEYS)}", place=origin.place(of_key=True), name=origin.written_as
                )
            )
        elif key != "degrade_action":
            tree.put(KEYS[key], value, origin)
        elif (order := _order(value)) is not None:
            tree.put(KEYS[key], order, origin)
        else:
            ours.problems.append(Problem((), _bad_action(value), place=origin.place(), name=origin.written_as))
    ours.values, ours.origins = tree.values, tree.origins
    return ours


def _order(value: object) -> list[str] | None:
    """The rungs that an action, or a list of them, stands for; the honest error is always the last."""
    actions = value if isinstance(value, list) else [value]
    rungs = [ACTIONS[each] for each in actions if isinstance(each, str) and each in ACTIONS]
    if not rungs or len(rungs) < len(actions):
        return None
    return rungs if rungs[-1] == "error" else [*rungs, "error"]


def _bad_action(value: object) -> str:
    known = ", ".join(ACTIONS)
    return f"must be one of {known}, or a list of them in order, got {value!r}{suggestion(str(value), ACTIONS)}"
