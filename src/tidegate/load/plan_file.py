"""A plan of the user's own, in YAML (docs/load-plans.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as FilePath

from pydantic import ValidationError

from tidegate.config.document import Document, read_document
from tidegate.config.mended import Mended
from tidegate.config.origin import Path
from tidegate.config.parameters import Shape
from tidegate.config.problem import Problem
from tidegate.config.wording import problem_of
from tidegate.errors import ConfigError
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plan_phases import PhaseMaker
from tidegate.load.plan_recipes import RecipeMaker
from tidegate.load.plan_sections import ObjectiveSection, PlanSection

ROOT = Shape(PlanSection)


def read_plan(path: FilePath, options: PlanOptions) -> Plan:
    """Raises ConfigError with every mistake at once, each with its place and with what would be right."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {getattr(error, 'strerror', None) or error}"]) from error
    if options.rate_per_s is not None:
        raise ConfigError([f"{path}: a plan file has rates of its own; multiply them (scale) in place of giving one"])
    document = read_document(text, str(path))
    _stop_at(document.problems, document, path)
    section, problems, taken, mended = _validated(document)
    if section is None:
        _stop_at(problems, document, path)
        raise ConfigError([f"{path}: nothing in it can be read"])
    recipes = RecipeMaker(section, path.parent)
    made = recipes.recipes()
    phases = PhaseMaker(section, made, options, path.parent)
    found = phases.phases()
    placed = [replace(each, path=mended.original(each.path)) for each in (*recipes.problems, *phases.problems)]
    # What is only wrong because something was taken out is no mistake of the user's.
    _stop_at([*problems, *(each for each in placed if not _is_near(each.path, taken))], document, path)
    return Plan(
        name=section.name,
        seed=options.seed,
        phases=found,
        objective=_objective(section.objective),
        objectives={name: _objective(each) for name, each in section.objectives.items()},
        notes=_notes(section, path, options),
    )


def _validated(document: Document) -> tuple[PlanSection | None, list[Problem], set[Path], Mended]:
    """Faulty values are taken out until the rest is sound, so that what lies between values is checked in one pass."""
    mended, problems = Mended(document.values), list[Problem]()
    taken: set[Path] = set()
    while True:
        try:
            return PlanSection.model_validate(mended.values), problems, taken, mended
        except ValidationError as error:
            found = [problem_of(each, ROOT) for each in error.errors(include_url=False)]
        placed = [replace(each, path=mended.original(each.path)) for each in found]
        problems += [each for each in placed if not _is_near(each.path, taken)]
        removed = mended.take_out([each.path for each in found])
        if not removed:
            return None, problems, taken, mended
        taken |= removed


def _is_near(path: Path, taken: set[Path]) -> bool:
    """Inside or above something that was taken out."""
    return any(path[: len(each)] == each or each[: len(path)] == path for each in taken)


def _stop_at(problems: list[Problem], document: Document, path: FilePath) -> None:
    """Raises ConfigError where there are any, in the order of the file."""
    if problems:
        placed = [(_line(problem, document), _place(problem, document, path), problem) for problem in problems]
        told = [problem.render(place) for _, place, problem in sorted(placed, key=lambda each: each[0])]
        raise ConfigError(list(dict.fromkeys(told)))


def _known(path: Path, document: Document) -> Path:
    """Of what is missing: where it should be."""
    while path and path not in document.origins:
        path = path[:-1]
    return path


def _line(problem: Problem, document: Document) -> int:
    at = _known(problem.path, document)
    return document.origins[at].line if at else 0


def _place(problem: Problem, document: Document, path: FilePath) -> str:
    at = _known(problem.path, document)
    return document.origins[at].place(problem.at_key or at != problem.path) if at else str(path)


def _objective(section: ObjectiveSection) -> Objective:
    return Objective(ttft_s=section.ttft_s, tpot_s=section.tpot_s, e2e_s=section.e2e_s)


def _notes(section: PlanSection, path: FilePath, options: PlanOptions) -> dict[str, str]:
    said = {
        "file": path.name,
        "gates": section.gates or "",
        "planned_rate_per_s": _number(section.planned_rate_per_s),
        "real_peak_per_s": _number(section.real_peak_per_s),
    }
    if any(phase.over_long_share for phase in section.phases) and options.context_tokens is None:
        said["over_long"] = "none: the target's context is not known"
    return {name: text for name, text in said.items() if text}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
