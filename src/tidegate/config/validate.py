"""Merged values to ``Settings``, with every mistake found in one pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from tidegate.config.checks import cross_check
from tidegate.config.mended import Mended
from tidegate.config.origin import Path
from tidegate.config.parameters import Shape
from tidegate.config.problem import Problem
from tidegate.config.settings import Settings
from tidegate.config.tree import Tree
from tidegate.config.wording import problem_of

ROOT = Shape(Settings)


@dataclass(slots=True)
class Checked:
    """``settings`` is None only where nothing sound was left to check further."""

    settings: Settings | None
    problems: list[Problem] = field(default_factory=list)


def check_values(tree: Tree, env: Mapping[str, str], unset: list[Path]) -> Checked:
    """Types, ranges and unknown keys of every section, then what lies between them.

    A faulty value is taken out and the rest is validated again, so that the cross-checks, which
    need a whole configuration, run in the same pass. What is only wrong because something was taken
    out is no mistake of the user's. ``unset`` are places whose value is not known at all.
    """
    mended = Mended(tree.values)
    checked = Checked(None)
    taken = mended.take_out(unset)
    while checked.settings is None:
        try:
            checked.settings = Settings.model_validate_json(json.dumps(mended.values))
        except ValidationError as error:
            found = [problem_of(each, ROOT) for each in error.errors(include_url=False)]
            checked.problems += _news(found, mended, taken)
            removed = mended.take_out([each.path for each in found])
            if not removed:
                return checked
            taken |= removed
    checked.problems += _news(cross_check(checked.settings, env), mended, taken)
    return checked


def _news(problems: list[Problem], mended: Mended, taken: set[Path]) -> list[Problem]:
    """The problems, at their first places, that do not come from what was taken out."""
    placed = [replace(each, path=mended.original(each.path)) for each in problems]
    touched = [(each.path, *map(mended.original, each.also)) for each in placed]
    return [each for each, paths in zip(placed, touched, strict=True) if not any(_near(path, taken) for path in paths)]


def _near(path: Path, taken: set[Path]) -> bool:
    """Inside or above something that was taken out."""
    return any(path[: len(each)] == each or each[: len(path)] == path for each in taken)
