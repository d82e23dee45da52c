from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.load.samples_of_a_run import Shape, a_run
from tidegate.errors import ConfigError
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.report_page import report_page, write_page

RAMP = (
    Shape(name="single", kind="single", duration_s=20.0, rate_per_s=2.0, users=1),
    Shape(name="50 users", kind="step", duration_s=20.0, rate_per_s=10.0, users=50),
    Shape(
        name="500 users", kind="step", duration_s=20.0, rate_per_s=15.0, users=500, endings={ClientOutcome.SHED: 0.3}
    ),
    Shape(name="burst", kind="burst", duration_s=30.0, rate_per_s=10.0, spike=(10.0, 15.0)),
    Shape(name="soak", kind="soak", duration_s=60.0, tenants=("alice", "noisy"), labels=("chat", "rag")),
)
VOID = {"meta", "input", "br"}


class Nesting(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Nothing stays open."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def svgs(page: str) -> list[ET.Element]:
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def titles(page: str) -> list[str]:
    return [
        text.text or "" for svg in svgs(page) for text in svg.iter() if text.get("font-weight") == "600" and text.text
    ]


def climbed() -> list[dict[str, object]]:
    step = {"answered_per_s": 20.0, "p50_s": 0.5, "p95_s": 0.9, "p99_s": 1.0, "error_rate": 0.0, "shed_rate": 0.0}
    late = {**step, "p99_s": None, "error_rate": 0.006}
    return [{**late, "users": 800, "why": "0.60 % errors"}, {**step, "users": 200, "why": ""}]


@pytest.fixture(scope="module")
def page() -> str:
    result, played = a_run(RAMP)
    result.knee = {"tidegate": {"rate_per_s": 9.0, "load": 80.0, "limit": 64.0, "unit": "users", "why": "it bends"}}
    result.consistency = {"same_share": 0.93, "answers": 60, "of": {"mean_similarity": 0.99}, "texts": [{}]}
    result.break_point = {"last_good_users": 200, "first_bad_users": 800, "why": "errors", "steps": climbed()}
    result.engine = {
        "readings": [
            {"title": "vllm", "unit": "requests", "lines": {"running": [[1.0, 3], [6.0, 4]], "waiting": []}},
            {"title": "vllm", "unit": "tokens", "lines": {"KV": []}},
        ],
        "notes": ["no GPU here"],
    }
    return report_page(result, played)


def test_a_page_is_whole_html_and_loads_nothing(page: str) -> None:
    parser = Nesting()
    parser.feed(page)
    assert parser.open == []
    assert "<script" not in page
    for word in ("src=", "href=", "@import", "url("):
        assert word not in page


def test_verdict_command_and_reasons_stand_at_the_top(page: str) -> None:
    head = page[page.index("<header>") : page.index("</header>")]
    assert '<span class="badge FAILED">FAILED</span>' in head
    assert "tidegate load http://127.0.0.1:8000/v1 --plan three-phase" in head
    assert "Missed: P99." in head


def test_the_charts_that_a_whole_plan_gives_are_all_there(page: str) -> None:
    assert titles(page) == [
        "Latency over time: from sending to the end (E2E)",
        "Time to first token (TTFT) over time",
        "Outcomes over time: tidegate (requests due per second)",
        "Target rate and achieved rate (requests per second)",
        "Percentiles of TTFT",
        "Percentiles of E2E, from sending",
        "E2E from sending and from schedule: soak",
        "Throughput and latency (E2E)",
        "Gaps inside streams",
        "Latency by length of the prompt: soak",
        "vllm (requests)",
    ]
    assert ">knee</text>" in page
    assert "burst: spike" in page


def test_everything_that_is_drawn_lies_within_its_picture(page: str) -> None:
    for svg in svgs(page):
        width, height = float(svg.get("width", 0)), float(svg.get("height", 0))
        for shape in svg.iter():
            for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                assert 0 <= float(shape.get(name, 0)) <= most, ET.tostring(shape)
            for pair in (shape.get("points") or "").split():
                x, y = map(float, pair.split(","))
                assert 0 <= x <= width
                assert 0 <= y <= height
            if shape.tag.endswith("rect"):
                assert float(shape.get("width", -1)) >= 0
                assert float(shape.get("x", 0)) + float(shape.get("width", 0)) <= width + 0.1
                assert float(shape.get("height", -1)) >= 0


def test_names_in_a_chart_do_not_lie_on_each_other() -> None:
    short = [Shape(name=f"step of {10 * index} users", duration_s=5.0, rate_per_s=3.0) for index in range(12)]
    result, _ = a_run([*short, Shape(name="soak", kind="soak", duration_s=600.0, rate_per_s=0.5)])
    svg = svgs(report_page(result))[0]
    names = [text for text in svg.iter() if text.get("font-size") == "11" and text.text]
    boxes = [(float(text.get("x", 0)), float(text.get("y", 0)), 6.6 * len(text.text or "")) for text in names]
    assert len(boxes) >= 3
    for index, (x, y, width) in enumerate(boxes):
        for other_x, other_y, other_width in boxes[index + 1 :]:
            assert abs(y - other_y) > 10 or x + width <= other_x or other_x + other_width <= x


def test_dimensions_layers_labels_tenants_and_definitions_are_told(page: str) -> None:
    for words in (
        "Three dimensions of stability",
        "Three layers of capability",
        "By kind of request",
        "By tenant",
        "queue_full × ",
        "<td>same share</td><td>93.0 %</td>",
        "<td>of: mean similarity</td><td>99.0 %</td>",
        "<dt>answers</dt><dd>60</dd>",
        "<dt>same share</dt><dd>93.0 %</dd>",
        "Made by Tidegate",
        "It held 200 users and broke at 800: errors",
        "0.60 % errors",
        "no GPU here",
        "it bends",
        "the largest of fewer than 100 values",
        "Time to first token: from sending to the first event",
    ):
        assert words in page, words


def test_without_the_records_curves_go_through_the_figures_that_a_result_has() -> None:
    result, played = a_run(RAMP)
    assert titles(report_page(result)) == titles(report_page(result, played))
    assert len(report_page(result)) < len(report_page(result, played))


def test_two_targets_are_laid_over_each_other_and_compared() -> None:
    result, played = a_run(RAMP, ("tidegate", "plain"))
    ratio = {"phase": "soak", "figure": "E2E P50", "ratio": 1.5, "low": None, "high": None, "turns": 1}
    result.compared = {"plain": [ratio, {**ratio, "low": 1.2, "high": 1.8, "turns": 9}]}
    result.score_card = {
        "best": "tidegate",
        "decided_by": "errors",
        "rows": [["1 · stability", "errors", "0 %", "1 %"]],
    }
    found = report_page(result, played)
    assert "1.50× (1.20× to 1.80×)" in found
    assert "tidegate is better, decided by: errors." in found
    result.score_card["best"] = ""
    assert "No clear difference" in report_page(result)
    assert "Side by side" in found
    assert "P99 (plain)" in found
    assert "interval unavailable at 1 turns" in found
    assert "soak · plain" in found
    assert "Outcomes over time: plain (requests due per second)" in titles(found)
    assert re.search(r"plain: [\d.]+ m?s \(\d+\.\d\d×\)", found)


def test_each_target_has_its_own_knee() -> None:
    result, _ = a_run(RAMP, ("tidegate", "plain"))
    result.knee = {"tidegate": {"rate_per_s": 8.0}, "plain": {"rate_per_s": None, "why": "no knee found"}, "x": 1}
    found = report_page(result)
    assert "knee (tidegate)" in found
    assert "knee (plain)" not in found
    assert "no knee found" in found


def test_an_earlier_run_stands_beside_this_one() -> None:
    earlier, _ = a_run(RAMP, seed=2)
    found = report_page(a_run(RAMP)[0], against=earlier)
    assert "soak · earlier: tidegate" in found
    assert "P99 (earlier: tidegate)" in found
    assert "Side by side" not in report_page(a_run(RAMP)[0])


def test_a_run_of_errors_says_that_there_are_no_answers() -> None:
    shapes = (
        Shape(name="all errors", duration_s=20.0, endings={ClientOutcome.REFUSED: 1.0}),
        Shape(name="nothing was due", duration_s=20.0, rate_per_s=1e-6),
    )
    result, played = a_run(shapes)
    result.invalid = ["nothing was due: sent too little"]
    found = report_page(result, played)
    assert found.count(">no answers</text>") == 5
    assert ">no streams</text>" in found
    assert '<span class="badge INVALID">INVALID</span>' in found


def test_a_run_without_phases_or_bars_is_still_a_page() -> None:
    result, _ = a_run((RAMP[0],))
    empty = replace(result, phases=[], verdicts=[])
    assert "No phase was played." in report_page(empty)
    assert "NOT JUDGED" in report_page(empty)


def test_a_climb_that_found_no_end_says_so() -> None:
    result, _ = a_run((RAMP[0],))
    result.break_point = {"first_bad_users": None, "ended": "100000 users and no break", "steps": climbed()[1:]}
    assert "It did not break: 100000 users and no break" in report_page(result)
    assert "Until it broke" not in report_page(a_run((RAMP[0],))[0])


def test_a_kind_of_phase_of_a_later_version_is_shown_after_those_that_are_known() -> None:
    shapes = (Shape(name="new", kind="invented", duration_s=20.0), Shape(name="old", kind="single", duration_s=10.0))
    assert "E2E from sending and from schedule: old" in titles(report_page(a_run(shapes)[0]))


def test_texts_of_others_are_shown_and_never_run() -> None:
    result, played = a_run((Shape(name="<b>x</b>", duration_s=10.0, labels=("<i>", "&")),), ('"a"><script>',))
    found = report_page(result, played)
    assert "<script" not in found
    assert "<b>x" not in found
    assert "&lt;i&gt;" in found


def test_a_page_that_can_not_be_written_says_why(tmp_path: Path) -> None:
    result, _ = a_run((RAMP[0],))
    write_page(result, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    with pytest.raises(ConfigError, match="not written"):
        write_page(result, tmp_path / "nowhere" / "report.html")
