"""Reads a drill file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from tidegate.config.document import Document, read_document
from tidegate.config.origin import Path
from tidegate.config.parameters import Shape
from tidegate.config.problem import Problem, suggestion
from tidegate.config.wording import problem_of
from tidegate.errors import ConfigError
from tidegate.load.drills.allowed_hosts import why_not_allowed
from tidegate.load.drills.drill_sections import DeploymentSection

ROOT = Shape(DeploymentSection)


def read_drill_file(path: FilePath, faults: frozenset[str], env: Mapping[str, str] = os.environ) -> DeploymentSection:
    """``faults``: the names that drills use. Raises ConfigError with every mistake at once, each with its place."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {getattr(error, 'strerror', None) or error}"]) from error
    document = read_document(text, str(path))
    section, problems = None, list(document.problems)
    if not problems:
        try:
            section = DeploymentSection.model_validate(document.values)
        except ValidationError as error:
            problems = [problem_of(each, ROOT) for each in error.errors(include_url=False)]
        problems += [*_hosts(document), *_variables(document, env), *_names(document, faults)]
    if problems or section is None:
        raise ConfigError(list(dict.fromkeys(problem.render(_place(problem, document, path)) for problem in problems)))
    return section


def _hosts(document: Document) -> Iterator[Problem]:
    """Of every URL in the file, also where something else in it is wrong."""
    listed = document.values.get("allow")
    allowed = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    for path, url in _texts(document, ("url", "admin_url")):
        why = why_not_allowed(url, allowed)
        if why:
            yield Problem(path, why)


def _variables(document: Document, env: Mapping[str, str]) -> Iterator[Problem]:
    for path, name in _texts(document, ("api_key_env", "admin_token_env")):
        if not env.get(name):
            yield Problem(path, f"the variable {name} is not set")


def _names(document: Document, faults: frozenset[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for path, name in _texts(document, ("name",)):
        if len(path) == 3 and name in seen:
            yield Problem(path, f"two replicas are called {name!r}")
        seen |= {name} if len(path) == 3 else set()
    for path in document.origins:
        if len(path) >= 2 and path[-2] == "faults" and path[-1] not in faults:
            known = ", ".join(sorted(faults))
            told = suggestion(str(path[-1]), faults) or f"; there are {known}"
            yield Problem(path, f"no drill makes this fault{told}", at_key=True)


def _texts(document: Document, keys: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    for path in document.origins:
        if path and path[-1] in keys and "faults" not in path:
            value = _at(document.values, path)
            if isinstance(value, str):
                yield path, value


def _at(values: Any, path: Path) -> Any:
    for part in path:
        values = values[part]
    return values


def _place(problem: Problem, document: Document, source: FilePath) -> str:
    """Of what is missing: where it should be."""
    at: Path = problem.path
    while at and at not in document.origins:
        at = at[:-1]
    return document.origins[at].place(problem.at_key or at != problem.path) if at else str(source)
