from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.load.made_samples import figures_of, phase, plan, sample, steadily
from tidegate.errors import ConfigError
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.figure_bar import FigureBar, figure_text
from tidegate.load.figure_name import FIGURE_NAMES, value_of_figure
from tidegate.load.gate_file import find_gates, read_gates
from tidegate.load.gate_rules import acceptance, burst, judge
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.verdict import Verdict

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gates.yaml"


def soak(name: str = "soak", e2e_s: float = 1.0) -> PhaseFigures:
    return figures_of(steadily(300, lambda k: e2e_s, tenant="gold"), phase(name, kind=Kind.SOAK))


def verdict(bar: str, *figures: PhaseFigures) -> Verdict:
    return judge(figures, read_gates(f"bars:\n  - {{{bar}}}\n", "gates.yaml"), plan())[0]


def test_the_example_is_read_and_adds_to_acceptance() -> None:
    gates = find_gates(str(EXAMPLE))
    assert len(gates.rules) == len(acceptance().rules) + 6
    found = judge([soak()], gates, plan())
    assert [each.passed for each in found[-6:]] == [True, True, True, True, True, None]


@pytest.mark.parametrize(
    ("bar", "passed", "measured"),
    [
        ("figure: ttft.p95, max: 0.25", True, "250 ms in soak"),
        ("figure: ttft.p95, max: 249 ms", False, "250 ms in soak"),
        ("figure: e2e.p50, min: 500 ms, max: 1 min", True, "1.00 s in soak"),
        ("figure: availability, min: 99.9 %", True, "100 % in soak"),
        ("figure: error_rate, max: 0.5 %", True, "0 % in soak"),
        ("figure: error_rate, max: 0.1 %", None, "0 % in soak"),
        ("figure: e2e.p999, max: 9", None, "1.00 s in soak"),
        ("figure: answered_per_s, min: 3.5", False, "2.98/s in soak"),
        ("figure: ttft.jitter, max: 2, tenant: gold", True, "1.00× in soak"),
        ("figure: outcomes.shed, max: 0, label: chat", True, "0 in soak"),
        ("figure: queue.p95, max: 1", None, "–"),
        ("figure: e2e.p95, max: 1, tenant: silver", None, "–"),
        ("figure: e2e.p95, max: 1, phase: soka", None, "–"),
        ("figure: recovered_in_s, max: 60", None, "–"),
    ],
)
def test_a_bar_is_judged_by_its_figure(bar: str, passed: bool | None, measured: str) -> None:
    found = verdict(bar, soak())
    assert (found.passed, found.measured) == (passed, measured)
    assert bool(found.why) is (passed is not True)


def test_the_worst_phase_counts_and_a_bar_may_name_one() -> None:
    phases = soak("morning"), soak("evening", 2.0)
    assert verdict("figure: e2e.p95, max: 1.5", *phases).measured == "2.00 s in evening"
    assert verdict("figure: e2e.p95, min: 1.5", *phases).measured == "1.00 s in morning"
    assert verdict("figure: e2e.p95, max: 1.5, phase: morning", *phases).passed is True
    assert "did you mean" in verdict("figure: e2e.p95, max: 1.5, phase: mornin", *phases).why
    assert verdict("figure: e2e.p95, max: 1.5").why == "no phase at all"


def test_a_bar_has_a_name_that_tells_what_it_is_of() -> None:
    assert verdict("figure: e2e.p95, max: 1, tenant: gold", soak()).name == "e2e.p95 (gold)"
    assert verdict("figure: e2e.p95, max: 1, name: quick, row: X-1", soak()).name == "quick"
    assert verdict("figure: e2e.p95, max: 1, min: 500 ms", soak()).bar == "e2e.p95 <= 1.00 s and >= 500 ms"


def test_every_mistake_is_told_at_once_with_its_place_and_what_may_be_meant() -> None:
    text = """extends: [acceptence, 3]
bar: 1
bars:
  - figure: ttft.p96
    max: fast
  - figure: e2e.p95
    lable: chat
  - figure: inter_chunk.p99
    tenant: gold
    label: chat
    max:
  - {max: 1, min: 2, figure: 7, required: maybe}
  - slow
"""
    with pytest.raises(ConfigError) as raised:
        read_gates(text, "g.yaml")
    told = "\n".join(raised.value.problems)
    for part in (
        "g.yaml:1:10: extends: must be of acceptance, acceptance@ttft, burst, linear, got 'acceptence'",
        'did you mean "acceptance"?',
        "got 3",
        'g.yaml:2:1: bar: is not known here (did you mean "bars"?)',
        "g.yaml:4:13: bars[0].figure: no figure is named 'ttft.p96' (did you mean",
        "g.yaml:5:10: bars[0].max: must be a number such as 2, 500 ms, 5 min or 0.5 %, got 'fast'",
        'g.yaml:7:5: bars[1].lable: is not known here (did you mean "label"?)',
        "bars[1]: has no bound",
        "bars[2]: inter_chunk.p99 is measured of whole phases",
        "bars[2]: give label or tenant",
        "bars[2].max: must be a number, got nothing",
        "bars[3].min: is above max (1)",
        "bars[3].figure: must be text, got 7",
        "bars[3].required: must be true or false, got 'maybe'",
        "bars[4]: must be a bar such as",
    ):
        assert part in told, told


@pytest.mark.parametrize("text", ["", "extends: []", "bars: []", "bars: {}", "bars: [", "- 1", "bars: 5"])
def test_a_file_without_a_bar_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read_gates(text, "g.yaml")


def test_gates_are_found_by_name_by_file_and_several_at_once(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("bars: [{figure: e2e.p50, max: 1}]\n")
    assert find_gates("burst").rules == burst().rules
    assert len(find_gates(f"burst, {own}").rules) == len(burst().rules) + 1
    for wrong in ("acceptence", str(tmp_path), "", " , "):
        with pytest.raises(ConfigError):
            find_gates(wrong)
    with pytest.raises(ConfigError, match='did you mean "acceptance"'):
        find_gates("acceptence")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        find_gates(str(tmp_path / "bad.yaml"))


def test_every_figure_has_a_value_or_none_and_a_text() -> None:
    found = soak()
    for name in FIGURE_NAMES:
        value = value_of_figure(found, found.all, name)
        assert value is None or figure_text(name, value)
    assert value_of_figure(found, found.all, "ttft.jitter") == 1.0
    shed = figures_of([sample(0, 1.0, ClientOutcome.SHED)])
    assert value_of_figure(shed, shed.all, "outcomes.shed") == 1.0
    assert value_of_figure(shed, shed.all, "ttft.p95") is None


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_verdict_passes_exactly_where_the_value_is_within_its_bounds(one: float, other: float) -> None:
    least, most = sorted((one, other))
    bar = FigureBar(figure="e2e.p50", most=most, least=least)
    for value in (least, most, least / 2, most * 2):
        made = figures_of([sample(0.0, value)])
        middle = value_of_figure(made, made.all, "e2e.p50")
        assert middle is not None
        assert bar([made], plan()).passed is (least <= middle <= most)
