"""Merged values to ``Settings``, with every mistake found in one pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from tidegate.config.checks import cross_check
from tidegate.config.origin import Path
from tidegate.config.parameters import Shape
from tidegate.config.problem import Problem
from tidegate.config.settings import Settings
from tidegate.config.tree import Tree, copied
from tidegate.config.wording import problem_of

ROOT = Shape(Settings)


@dataclass(slots=True)
class Checked:
    """``settings`` is None only where nothing sound was left to check further."""

    settings: Settings | None
    problems: list[Problem] = field(default_factory=list)


def check_values(tree: Tree, env: Mapping[str, str]) -> Checked:
    """Types, ranges and unknown keys of every section.

    A faulty value is taken out and the rest is validated again, so that the cross-checks, which
    need a whole configuration, run in the same pass. What is only missing because it was taken out
    is no mistake of the user's.
    """
    mended = Tree()
    mended.values = copied(tree.values)
    checked = Checked(None)
    taken: set[Path] = set()
    while checked.settings is None:
        try:
            checked.settings = Settings.model_validate_json(json.dumps(mended.values))
        except ValidationError as error:
            found = [problem_of(each, ROOT) for each in error.errors(include_url=False)]
            checked.problems += [each for each in found if not _near(each.path, taken)]
            removed = [_take_out(mended, each, taken) for each in found]
            if not any(removed):
                return checked
    checked.problems += [each for each in cross_check(checked.settings, env) if not _near(each.path, taken)]
    return checked


def _near(path: Path, taken: set[Path]) -> bool:
    """Inside or above something that was taken out."""
    return any(path[: len(each)] == each or each[: len(path)] == path for each in taken)


def _take_out(mended: Tree, problem: Problem, taken: set[Path]) -> bool:
    """Remove the faulty value, or, where it is missing or gone, the nearest thing around it."""
    path = problem.path
    while path:
        if mended.remove(path):
            taken.add(path)
            return True
        path = path[:-1]
    return False
