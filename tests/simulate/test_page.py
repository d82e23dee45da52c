from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tidegate.errors import ConfigError
from tidegate.simulate.charts import Axis, share_axis
from tidegate.simulate.comparison import Comparison, compare
from tidegate.simulate.page import check_kind, write

SVG = "{http://www.w3.org/2000/svg}"
COLUMNS = {"errors": lambda row: str(row["errors"]["rate"])}


@pytest.fixture(scope="module")
def sweep() -> Comparison:
    return compare("mixed@0.2,0.4", ["native", "bound"], (1,))


def titles(path: Path) -> list[str]:
    tree = ET.parse(path)
    return [each.text or "" for each in tree.iter(f"{SVG}text") if each.get("font-weight") == "600"]


def test_a_sweep_is_drawn_over_the_load_with_a_frontier_and_each_load_by_itself(
    sweep: Comparison, tmp_path: Path
) -> None:
    path = tmp_path / "sweep.svg"
    write(sweep, path, COLUMNS)
    found = titles(path)
    assert found[:5] == [
        "mixed@0.2, mixed@0.4",
        "In their SLO, of requests, by load",
        "In their SLO, of tokens, by load",
        "Errors, of requests, by load",
        "Frontier: interactive against relaxed",
    ]
    assert "mixed@0.4: in SLO by tokens of prompt" in found
    assert "mixed@0.4: over time" in found


def test_everything_that_is_drawn_lies_within_its_picture(sweep: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "sweep.svg"
    write(sweep, path, COLUMNS)
    for picture in ET.parse(path).getroot():
        width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
        for dot in picture.iter(f"{SVG}circle"):
            assert 0 < float(dot.get("cx", -1)) < width
            assert 0 < float(dot.get("cy", -1)) < height
        for line in picture.iter(f"{SVG}polyline"):
            for pair in (line.get("points") or "").split():
                x, y = map(float, pair.split(","))
                assert 0 < x < width
                assert 0 < y < height
        for bar in picture.iter(f"{SVG}rect"):
            assert float(bar.get("height", -1)) >= 0


def test_a_page_holds_pictures_and_tables_and_loads_nothing(sweep: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "sweep.html"
    write(sweep, path, COLUMNS)
    text = path.read_text(encoding="utf-8")
    assert text.count("<svg") == 4 + 2 * 3
    assert text.count("<table>") == 2
    assert "<td>native" in text
    assert "no engine and no GPU was used" in text
    assert "src=" not in text
    assert "href=" not in text


def test_scenarios_without_a_number_have_no_curves(tmp_path: Path) -> None:
    path = tmp_path / "giants.svg"
    write(compare("giant-and-99@group,without", ["bound"], (1,)), path, COLUMNS)
    assert titles(path)[1] == "giant-and-99@group: goodput and errors"


def test_where_and_what_can_not_be_written_is_told(sweep: Comparison, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.html or \.svg"):
        check_kind(tmp_path / "plot.png")
    check_kind(tmp_path / "plot.SVG")
    with pytest.raises(ConfigError, match="No such file or directory"):
        write(sweep, tmp_path / "nowhere" / "plot.svg", COLUMNS)


def test_ticks_are_round_and_inside_and_logarithms_show_decades() -> None:
    assert share_axis("x").ticks() == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    axis = Axis.seconds("s", [0.03, 12.0, 0.0])
    assert axis.ticks() == pytest.approx([0.01, 0.1, 1.0, 10.0, 100.0])
    assert (axis.part(0.01), axis.part(1.0), axis.part(0.0)) == pytest.approx((0.0, 0.5, 0.0))
    assert [axis.name(tick) for tick in axis.ticks()] == ["0.01", "0.1", "1", "10", "100"]
    assert Axis.around("x", [2.0]).ticks()[0] >= 1.5
