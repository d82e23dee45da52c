from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.made_samples import figures_of, phase, plan, sample, steadily
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.gate_rules import acceptance, built_in, burst, judge, linear
from tidegate.load.length_figures import LengthFigures
from tidegate.load.length_line import curves, line_through
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.rated_bars import TTFT
from tidegate.load.result import Result
from tidegate.load.verdict import Verdict

SOAK_S = 1000.0


def soak(e2e_s: Callable[[int], float] = lambda k: 1.0, **failed: int) -> PhaseFigures:
    """Two a second; ``failed`` says how many ended in which way."""
    samples = steadily(2000, e2e_s, SOAK_S)
    at = iter(range(0, 2000, 3))
    for outcome, count in failed.items():
        for _ in range(count):
            samples[next(at)].outcome = ClientOutcome(outcome)
    return figures_of(samples, phase("soak", kind=Kind.SOAK, duration_s=SOAK_S))


def step(users: int, e2e_s: Callable[[int], float], count: int = 200, **changes: Any) -> PhaseFigures:
    of = phase(f"step-{users}", kind=Kind.STEP, users=users, **changes)
    return figures_of(steadily(count, e2e_s), of)


def spike(bad_s: float, *, outcome: ClientOutcome = ClientOutcome.OK, bad_e2e_s: float = 5.0) -> PhaseFigures:
    """Four a second for 1000 s, twelve a second from 200 to 210 s."""
    of = phase("burst", kind=Kind.BURST, duration_s=1000.0, spike=(200.0, 210.0))
    times = [k / 4 for k in range(4000)] + [200 + k / 8 for k in range(80)]
    return figures_of(
        [
            sample(at, bad_e2e_s, outcome) if 200 <= at < 210 + bad_s else sample(at, 1.0 + k % 3 / 50)
            for k, at in enumerate(times)
        ],
        of,
    )


def verdicts(*figures: PhaseFigures, made: Plan | None = None) -> dict[str, Verdict]:
    return {each.row: each for each in judge(figures, acceptance(), made or plan())}


def test_a_steady_service_passes_every_bar_that_its_run_can_show() -> None:
    found = verdicts(soak(), spike(0.0), step(10, lambda k: 1.0), step(100, lambda k: 1.5))
    assert {row: each.passed for row, each in found.items()} == {
        "S1-46": True, "S1-47": True, "S1-48": True, "S1-50": True, "S1-51": True, "S1-41": True,
        "S1-60": None, "S1-52": True, "S1-57": True, "S2-53": True,
    }  # fmt: skip
    assert not found["S1-60"].is_required, "a plan without over-long requests is judged without them"
    assert all(each.why for each in found.values() if not each.passed)


@pytest.mark.parametrize(
    ("figures", "failing"),
    [
        (soak(lambda k: 2.1), {"S1-46"}),
        (soak(lambda k: 2.0), set()),
        (soak(lambda k: 3.01 if k % 10 == 0 else 1.0), {"S1-47"}),
        (soak(lambda k: 3.0 if k % 10 == 0 else 1.0), set()),
        (soak(lambda k: 10.1 if k % 50 == 0 else 1.0), {"S1-48"}),
        (soak(error=1), set()),
        (soak(error=2), {"S1-51"}),
        (soak(abnormal=3), {"S1-51", "S1-41"}),
        (soak(error=1, shed=1), set()),
        (soak(error=1, shed=2), {"S1-41"}),
        (soak(timeout=10), {"S1-50", "S1-51", "S1-41"}),
        (soak(degraded=500), set()),
        (soak(expected=100), set()),
        (soak(expected=99, unexpected=1), {"S1-60"}),
    ],
)
def test_each_bar_fails_where_its_requirement_says_so(figures: PhaseFigures, failing: set[str]) -> None:
    assert {row for row, each in verdicts(figures).items() if each.passed is False} == failing


def test_nothing_is_judged_without_data_and_each_bar_says_what_to_run() -> None:
    found = judge([], acceptance(), plan())
    assert {each.passed for each in found} == {None}
    assert all(each.why for each in found)
    assert judge([], burst(), plan())[0].passed is None


def test_a_few_requests_show_no_small_share_and_no_high_percentile() -> None:
    found = verdicts(figures_of(steadily(50, lambda k: 1.0)))
    assert (found["S1-46"].passed, found["S1-47"].passed) == (True, True)
    assert {found[row].passed for row in ("S1-48", "S1-50", "S1-51", "S1-41")} == {None}
    assert "at least 1000" in found["S1-51"].why
    worse = verdicts(figures_of([*steadily(50, lambda k: 1.0), sample(0, 1.0, ClientOutcome.ERROR)]))
    assert worse["S1-51"].passed is False, "one of 51 is more than 0.1 %"


def test_a_service_that_answers_nobody_has_not_passed() -> None:
    found = verdicts(figures_of([sample(k / 20, 1.0, ClientOutcome.SHED) for k in range(2000)]))
    assert found["S1-46"].passed is None
    assert found["S1-41"].passed is False
    assert "0 % of" in found["S1-41"].measured


def test_the_worst_of_several_phases_counts_and_is_named() -> None:
    slow = figures_of(steadily(200, lambda k: 2.5), phase("evening"))
    assert verdicts(soak(), slow)["S1-46"].measured == "2.50 s in evening"


def test_overload_is_not_held_against_the_bars_of_rated_load() -> None:
    assert verdicts(soak(), spike(30.0, outcome=ClientOutcome.ERROR), step(500, lambda k: 60.0))["S1-51"].passed
    low, high = step(10, lambda k: 1.0, 2000), step(500, lambda k: 60.0, 9000)
    assert verdicts(low, high)["S1-46"].passed is False
    assert verdicts(low, high, made=plan(notes={"planned_rate_per_s": "20"}))["S1-46"].passed is True


def test_responses_may_be_judged_by_their_first_token() -> None:
    found = judge([soak(lambda k: 7.9)], acceptance(TTFT), plan())
    assert found[0].name == "P50 (first token, from sending)"
    assert found[0].passed is True
    assert judge([soak(lambda k: 8.1)], acceptance(TTFT), plan())[0].passed is False
    whole = figures_of([sample(k, 1.0, is_stream=False) for k in range(100)])
    assert "no stream" in judge([whole], acceptance(TTFT), plan())[0].why


def test_every_target_has_its_own_verdicts() -> None:
    of = phase("soak", kind=Kind.SOAK)
    fast = figures_of(steadily(200, lambda k: 1.0, target="a"), of)
    slow = figures_of(steadily(200, lambda k: 3.0, target="b"), of)
    found = judge([replace(fast, target="a"), replace(slow, target="b")], acceptance(), plan())
    assert [(each.target, each.passed) for each in found if each.row == "S1-46"] == [("a", True), ("b", False)]
    assert {each.target for each in judge([fast], acceptance(), plan())} == {""}


def test_p99_may_widen_from_step_to_step_but_not_jump() -> None:
    calm = [step(10, lambda k: 0.5), step(50, lambda k: 0.8), step(100, lambda k: 4.0)]
    assert verdicts(*calm)["S1-57"].passed is True
    found = verdicts(*calm, step(200, lambda k: 40.5))["S1-57"]
    assert (found.passed, found.measured) == (False, "10.12× from 100 users to 200 users")
    assert verdicts(calm[0])["S1-57"].passed is None
    assert verdicts(calm[0])["S1-57"].is_required
    assert not verdicts(soak())["S1-57"].is_required, "a plan without a ramp is judged without it"
    few = verdicts(*calm[:2], step(100, lambda k: 0.9, 30))["S1-57"]
    assert few.passed is None
    assert "step-100" in few.why


def test_steps_of_an_open_loop_are_ordered_by_their_rate() -> None:
    low = figures_of(steadily(100, lambda k: 0.1), phase("a", kind=Kind.STEP))
    high = figures_of(steadily(300, lambda k: 2.0), phase("b", kind=Kind.STEP))
    assert verdicts(high, low)["S1-57"].measured == "20.00× from 1.00/s to 3.00/s"


def test_jitter_at_a_hundred_users() -> None:
    assert verdicts(step(100, lambda k: 2.8 if k % 20 == 0 else 1.2))["S2-53"].passed is False, "2.33"
    assert verdicts(step(100, lambda k: 2.7 if k % 20 == 0 else 1.2))["S2-53"].passed is True
    assert verdicts(step(100, lambda k: 1.0, 20))["S2-53"].passed is None
    assert "S2-53" not in verdicts(step(50, lambda k: 1.0))


def test_planned_load_needs_headroom_below_the_measured_peak() -> None:
    ramp = [step(10, lambda k: 1.0, 300), step(50, lambda k: 1.0, 1000), step(100, lambda k: 1.0, 900)]

    def judged(planned: float, *figures: PhaseFigures) -> Verdict:
        return verdicts(*figures, made=plan(notes={"planned_rate_per_s": f"{planned}"}))["S1-49"]

    assert judged(6.9, *ramp).passed is True
    found = judged(7.1, *ramp)
    assert found.passed is False
    assert "plan at most 6.9" in found.why
    assert judged(7.1, *ramp[:2]).passed is None, "the peak was not reached"
    assert judged(7.1, ramp[0]).passed is None
    assert "S1-49" not in verdicts(*ramp)
    assert "S1-49" not in verdicts(*ramp, made=plan(notes={"planned_rate_per_s": "some"}))


def test_one_and_a_half_times_the_real_peak_must_be_carried() -> None:
    made = plan(notes={"real_peak_per_s": "10"})

    def judged(*figures: PhaseFigures) -> Verdict:
        return verdicts(*figures, made=made)["S1-53"]

    peak = phase("peak")
    assert judged(figures_of(steadily(1500, lambda k: 1.0), peak)).passed is True
    assert judged(figures_of(steadily(1500, lambda k: 11.0), peak)).passed is False
    assert judged(soak()).passed is None
    shed = steadily(1500, lambda k: 1.0)
    for each in shed[:10]:
        each.outcome = ClientOutcome.SHED
    assert judged(figures_of(shed, peak)).passed is False
    found = verdicts(figures_of(shed, peak), soak(), made=made)
    assert found["S1-41"].passed is True, "what plays the peak is not the rated load"
    assert judged(figures_of([sample(k / 15, 1.0, ClientOutcome.SHED) for k in range(1500)], peak)).passed is False


def test_recovery_is_wanted_within_minutes() -> None:
    assert verdicts(spike(100.0))["S1-52"].passed is True
    assert verdicts(spike(400.0))["S1-52"].passed is False
    assert verdicts(spike(800.0))["S1-52"].passed is False, "never back"
    of = phase("burst", kind=Kind.BURST, spike=(50.0, 90.0))
    short = figures_of([sample(k / 10, 1.0 if k < 500 else 8.0) for k in range(1000)], of)
    assert verdicts(short)["S1-52"].passed is None, "ten seconds after it show nothing"


def test_a_burst_may_cost_few_errors_and_must_go_on_answering() -> None:
    def judged(*figures: PhaseFigures) -> list[bool | None]:
        return [each.passed for each in judge(figures, burst(), plan())]

    assert judged(spike(0.0)) == [True, True, True]
    assert judged(spike(0.0, outcome=ClientOutcome.ERROR)) == [False, False, True]
    assert judged(spike(0.0, outcome=ClientOutcome.SHED)) == [True, False, True], "refusing all is no survival"
    assert judged(soak()) == [None, None, None]
    told = judge([spike(0.0, outcome=ClientOutcome.SHED)], burst(), plan())[0].measured
    assert told == "0 % of 4080 in burst; shed 2.94 %, degraded 0 %"
    flat = figures_of(steadily(500, lambda k: 1.0), phase("burst", kind=Kind.BURST))
    assert judged(flat) == [True, None, None]


def long(tokens_to_s: Callable[[float], float]) -> PhaseFigures:
    samples = [
        sample(k % 100, 30.0, first_at=k % 100 + tokens_to_s(tokens) * (1 + k % 5 / 100), prompt_tokens=tokens)
        for k in range(50)
        for tokens in (300, 1000, 2000, 4000, 7000, 10_000)
    ]
    return figures_of(samples, phase("long"))


@pytest.mark.parametrize(
    ("curve", "passed"),
    [
        (lambda tokens: 0.2 + tokens * 4e-4, True),
        (lambda tokens: 0.2 + tokens * 4e-4 if tokens < 10_000 else 7.0, False),
        (lambda tokens: 0.2 + (tokens / 10_000) ** 2 * 4, False),
        (lambda tokens: 0.2, True),
    ],
)
def test_long_prompts_must_take_longer_in_a_line(curve: Callable[[float], float], passed: bool) -> None:
    found = verdicts(long(curve))["S2-54"]
    assert found.passed is passed, found.measured
    assert "R²" in found.measured


def test_a_line_needs_several_lengths_up_to_ten_thousand_tokens() -> None:
    assert "S2-54" not in verdicts(soak())
    asked = judge([soak()], linear(), plan())
    assert [each.passed for each in asked] == [None]
    assert "long-context" in asked[0].why
    assert judge([long(lambda tokens: tokens * 1e-4)], linear(), plan())[0].passed is True
    only = figures_of([sample(k, 1.0, prompt_tokens=10_000) for k in range(50)])
    assert verdicts(only)["S2-54"].passed is None


def test_whole_answers_are_held_against_the_line_by_all_their_time() -> None:
    lengths = [
        LengthFigures(tokens=x, count=9, ttft_p50_s=None, ttft_p95_s=None, e2e_p50_s=x, e2e_p95_s=2 * x)
        for x in (1.0, 2.0, 3.0, 4.0)
    ]
    assert curves(lengths) == [("E2E P50", [(x, x) for x in (1.0, 2.0, 3.0, 4.0)])]


@given(st.floats(1e-6, 1e-2), st.floats(0, 2), st.lists(st.integers(1, 20_000), min_size=4, max_size=9, unique=True))
def test_a_line_is_found_in_points_that_lie_on_one(slope_s: float, start_s: float, lengths: list[int]) -> None:
    found = line_through([(x, start_s + slope_s * x) for x in lengths])
    assert found.slope_s == pytest.approx(slope_s, rel=1e-3)
    assert found.worst_residual == pytest.approx(0, abs=1e-6)
    assert found.r2 == pytest.approx(1.0)


@settings(max_examples=5)
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200))
def test_more_failures_never_mend_a_verdict(errors: int, shed: int, more: int) -> None:
    rank = {True: 2, None: 1, False: 0}
    before, after = verdicts(soak(error=errors, shed=shed)), verdicts(soak(error=errors + more, shed=shed))
    for row in ("S1-51", "S1-41"):
        assert rank[after[row].passed] <= rank[before[row].passed]


def test_built_in_gates_go_by_their_names() -> None:
    assert list(built_in()) == ["acceptance", "acceptance@ttft", "burst", "linear"]
    both = acceptance() + burst()
    assert both.name == "acceptance,burst"
    rows = [each.row for each in judge([], both, plan())]
    assert rows.count("S1-52") == 1, "a bar of both is judged once"
    assert len(rows) == len(judge([], acceptance(), plan())) + 2


def result(*judged: Verdict, invalid: Sequence[str] = ()) -> Result:
    return Result(
        plan="p",
        seed=1,
        targets=["t"],
        began="",
        command="",
        manifest={},
        phases=[],
        verdicts=list(judged),
        invalid=list(invalid),
    )


def verdict(passed: bool | None, *, is_required: bool = True) -> Verdict:
    return Verdict(name="n", row="", bar="", measured="", passed=passed, is_required=is_required)


def test_a_run_passes_where_every_required_bar_was_judged_and_met() -> None:
    assert result().passed is None
    assert result(verdict(True), verdict(None, is_required=False)).passed is True
    assert result(verdict(True), verdict(None)).passed is False
    assert result(verdict(True), verdict(False, is_required=False)).passed is False
    assert result(verdict(None, is_required=False)).passed is False, "nothing was judged"
    assert result(verdict(True), invalid=["soak: the generator lagged"]).passed is False
