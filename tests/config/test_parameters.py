from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from tidegate.config import Settings
from tidegate.config.parameters import Shape, parameters
from tidegate.config.section import Ranged, field_meanings, section_of
from tidegate.config.settings import Settings as Root
from tidegate.config.table import markdown_table

ROOT = Path(__file__).resolve().parents[2]


def test_every_key_says_what_it_means() -> None:
    assert [each.key for each in parameters(Settings) if not each.meaning] == []


def test_a_key_has_type_range_default_and_rows() -> None:
    by_key = {each.key: each for each in parameters(Settings)}
    multiplier = by_key["tail.timeouts.multiplier"]
    assert (multiplier.type, multiplier.range, multiplier.default) == ("number", "> 1", 3.0)
    assert multiplier.spec == ("S0-40", "S0-45")
    assert by_key["tail.timeouts.gap.floor_s"].default == 10
    assert by_key["server.max_body_bytes"].type == "size"
    assert by_key["ladder.order"].type == "list of cache, simplify_output, light_model, standby, error"
    assert by_key["upstreams.<name>.replicas[].url"].required
    assert by_key["upstreams.<name>.replicas[].sequences"].range == "≥ 1"
    assert by_key["classes"].default.keys() == {"interactive", "long", "batch", "other"}


def test_the_page_lists_every_key_as_the_code_has_it() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    written = page.split("<!-- keys -->")[1].split("<!-- end of keys -->")[0].strip()
    assert written == markdown_table().strip(), "write it anew: tidegate schema --table"


@dataclasses.dataclass(frozen=True)
class Inner:
    """Holds one thing."""

    most: int


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner = Inner(3)
    """What it holds."""
    names: list[str] = dataclasses.field(default_factory=list)


def test_a_dataclass_becomes_a_section_with_its_own_defaults_and_meanings() -> None:
    model = section_of(Outer, {"inner": (Ranged(most=Field(ge=1)),)})
    assert model.model_fields["inner"].description == "What it holds."
    held = model.model_validate_json('{"inner": {"most": 5}}')
    assert held.inner == Inner(5)  # type: ignore[attr-defined]  # the model's fields are made at run time
    assert model().model_dump() == {"inner": {"most": 3}, "names": []}


def test_a_range_for_a_field_that_is_not_there_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError, match="Inner has no least"):
        section_of(Inner, {"least": (Field(ge=1),)})


def test_meanings_come_from_source_where_there_is_any() -> None:
    assert field_meanings(Outer) == {"inner": "What it holds."}
    assert field_meanings(dataclasses.make_dataclass("Made", ["x"])) == {}


def test_shapes_see_through_annotations() -> None:
    inner = Shape(Root).at(("server", "port"))
    assert inner is not None
    assert inner.type_name() == "whole number"
    assert not inner.takes_text()
    table = Shape(dict[str, Annotated[int, Field(ge=1)]])
    assert (table.type_name(), Shape(list[str]).type_name()) == ("table of whole number", "list of text")
    assert (table.keys(), Shape(Inner).child("most")) == ((), None)
