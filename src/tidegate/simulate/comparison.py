"""Scenarios x policies x seeds, each pair as the medians over its seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.simulate.course import Course, course
from tidegate.simulate.over_seeds import against_native, worst
from tidegate.simulate.report import report
from tidegate.simulate.run import Run
from tidegate.simulate.summary import medians
from tidegate.simulate.sweep import runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One policy in one scenario."""

    scenario: str
    policy: str
    figures: dict[str, Any]
    """Medians over the seeds, as in a report."""
    course: Course
    """Of the first seed."""

    @property
    def load(self) -> float | None:
        """The number after the @, if there is one: the place on a load axis."""
        number, _, _ = self.scenario.partition("@")[2].partition("/")
        try:
            return float(number)
        except ValueError:
            return None


@dataclass(slots=True)
class Comparison:
    scenarios: list[str]
    policies: list[str]
    seeds: Sequence[int]
    source: str = ""
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By scenario: figures computed for it, of the first seed."""
    objectives: dict[str, float] = field(default_factory=dict)
    """TTFT in seconds of the kinds of requests that have one of their own."""
    cells: list[Cell] = field(default_factory=list)

    @property
    def title(self) -> str:
        return ", ".join(self.scenarios)

    def of_policy(self, policy: str) -> Iterator[Cell]:
        return (cell for cell in self.cells if cell.policy == policy)

    def of_scenario(self, scenario: str) -> Iterator[Cell]:
        return (cell for cell in self.cells if cell.scenario == scenario)


def loads_of(text: str) -> list[str]:
    """``azure-conv@1,2/slow`` names two scenarios: what stands before the @ holds for each."""
    name, mark, arguments = text.partition("@")
    return [f"{name}@{argument}" for argument in arguments.split(",")] if mark else [name]


def compare(
    text: str, policies: Sequence[str], seeds: Sequence[int], tell: Callable[[str], None] = lambda _: None
) -> Comparison:
    """Play everything; ``tell`` hears what comes next. Raises ConfigError for a name that is not known."""
    found = Comparison(loads_of(text), list(policies), seeds)
    for scenario in found.scenarios:
        reports: dict[str, list[dict[str, Any]]] = {}
        courses: dict[str, Course] = {}
        for policy in policies:
            tell(f"{scenario} under {policy}")
            runs = runs_of(scenario, policy, seeds)
            reports[policy] = [report(run) for run in runs]
            courses[policy] = course(runs[0].visits)
            _note(found, scenario, runs[0], reports[policy][0])
        against_native(reports)
        for policy, each in reports.items():
            figures = medians(each) | {"worst": worst(each)}
            found.cells.append(Cell(scenario=scenario, policy=policy, figures=figures, course=courses[policy]))
    return found


def _note(found: Comparison, scenario: str, run: Run, first: dict[str, Any]) -> None:
    found.source = run.scenario.source
    found.notes.setdefault(scenario, first["notes"])
    for demand in run.scenario.demands:
        if demand.ttft_slo_s is not None:
            found.objectives.setdefault(demand.label, demand.ttft_slo_s)
