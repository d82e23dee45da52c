from __future__ import annotations

from dataclasses import fields

import pytest

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.definitions import DEFINITIONS, OF_DISTRIBUTIONS, OF_PARTS, OF_PHASES, OF_SLICES
from tidegate.load.distribution import Distribution
from tidegate.load.length_figures import LengthFigures
from tidegate.load.phase_figures import Moment, PartFigures, PhaseFigures


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
