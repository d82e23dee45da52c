from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.definitions import DEFINITIONS, OF_DISTRIBUTIONS, OF_PARTS, OF_PHASES, OF_SLICES
from tidegate.load.distribution import Distribution
from tidegate.load.gate_rules import built_in, judge
from tidegate.load.length_figures import LengthFigures
from tidegate.load.phase_figures import Moment, PartFigures, PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.score_card import CRITERIA


@pytest.mark.parametrize("kind", [PhaseFigures, PartFigures, Moment, LengthFigures, Distribution])
def test_every_field_has_a_definition(kind: type) -> None:
    assert [each.name for each in fields(kind) if each.name not in DEFINITIONS] == []


def test_every_outcome_and_token_source_has_one() -> None:
    assert [outcome for outcome in ClientOutcome if f"outcomes.{outcome.value}" not in DEFINITIONS] == []
    assert {"token_sources.usage", "token_sources.chunks", "jitter"} <= set(DEFINITIONS)


def test_no_definition_is_of_a_figure_that_does_not_exist() -> None:
    known = {
        each.name for kind in (PhaseFigures, PartFigures, Moment, LengthFigures, Distribution) for each in fields(kind)
    }
    assert {name for name in DEFINITIONS if "." not in name} - known == {"jitter"}


def test_no_name_has_two_definitions() -> None:
    groups = (OF_PHASES, OF_PARTS, OF_DISTRIBUTIONS, OF_SLICES)
    assert sum(map(len, groups)) == len({name for group in groups for name in group})


def test_the_disagreement_between_tools_is_named_where_it_is() -> None:
    assert "GuideLLM" in DEFINITIONS["tpot"]
    assert all(text.endswith((".", "%")) for text in DEFINITIONS.values())


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "gates.md").read_text()


def test_the_page_of_gates_has_every_definition_as_it_is_printed() -> None:
    rows = [
        f"| `{name.removeprefix('outcomes.').removeprefix('token_sources.')}` | {text} |"
        for name, text in DEFINITIONS.items()
    ]
    assert [row for row in rows if row not in PAGE] == []


def test_the_page_of_gates_has_every_bar_and_the_example_as_it_is() -> None:
    rows = {
        verdict.row for gates in built_in().values() for verdict in judge([], gates, Plan(name="", seed=0, phases=()))
    }
    assert [row for row in rows if f"| {row} |" not in PAGE] == []
    assert (Path(__file__).resolve().parents[2] / "examples" / "gates.yaml").read_text() in PAGE
    assert [each.name for each in CRITERIA.values() if each.name not in PAGE] == []
