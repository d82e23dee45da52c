from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.made_samples import figures_of, phase, plan, played, sample, steadily
from tidegate.load.breaking import PRECISION, BreakBars, Climb
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.measures import measure
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures


def step(users: int, e2e_s: float = 1.0, count: int = 120, **failed: int) -> PhaseFigures:
    samples = steadily(count, lambda k: e2e_s)
    at = iter(range(count))
    for outcome, number in failed.items():
        for _ in range(number):
            samples[next(at)].outcome = ClientOutcome(outcome)
    return figures_of(samples, phase(f"{users}", kind=Kind.STEP, users=users))


ONE = pytest.approx(1.0)


def climbed(climb: Climb, service: Callable[[int], PhaseFigures]) -> Climb:
    for _ in range(100):
        users = climb.next_users()
        if users is None:
            return climb
        climb.observe(service(users))
    raise AssertionError("the climb does not end")


@settings(max_examples=30)
@given(st.integers(1, 3000), st.integers(1, 4000))
def test_the_break_is_found_to_ten_percent_wherever_it_is_and_the_climb_begins(breaks_at: int, first: int) -> None:
    good, bad = step(1), step(1, error=60)

    def service(users: int) -> PhaseFigures:
        return replace(bad if users >= breaks_at else good, users=users)

    climb = climbed(Climb(first_users=first), service)
    told = climb.told()
    assert told["broke"] is True
    assert told["first_bad_users"] >= breaks_at
    if breaks_at > 1:
        assert told["last_good_users"] < breaks_at
        assert told["first_bad_users"] <= max(told["last_good_users"] * PRECISION, told["last_good_users"] + 1)
    assert len(climb.steps) < 40


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        (step(20, error=1), "errors 0.83 %"),
        (step(20, timeout=1), "timeouts 0.83 %"),
        (step(20, 10.5), "P99 10.5 s"),
        (step(20, 7.5), "P99 from 700 ms to 7.50 s"),
        (step(20, 6.5), ""),
        (step(20, count=100), "throughput fell from 1.20/s to 1.00/s"),
        (step(20, count=110), ""),
        (step(20, shed=30), "throughput fell"),
        (step(20, count=400, shed=250), "shed 62.5 %: it holds, and takes no more"),
        (step(20, count=400, degraded=250), ""),
    ],
)
def test_what_counts_as_broken(figures: PhaseFigures, why: str) -> None:
    climb = Climb(first_users=10)
    climb.observe(step(10, 0.7))
    found = climb.observe(figures).why
    assert found.startswith(why)
    assert bool(found) is bool(why)


def test_latency_alone_breaks_a_service_only_where_it_has_a_limit() -> None:
    assert Climb(first_users=10).observe(step(10, 11.0)).why == "P99 11.0 s"
    assert Climb(first_users=10, bars=BreakBars(p99_s=None)).observe(step(10, 11.0)).why == ""
    assert Climb(first_users=10, bars=BreakBars(p99_s=5.0)).observe(step(10, 6.0)).why == "P99 6.00 s"


def test_who_answers_nothing_is_broken_and_who_sheds_has_not() -> None:
    nothing = figures_of([sample(0, 1.0, ClientOutcome.UNSENT)], phase(users=3))
    assert Climb(first_users=3).observe(nothing).why == "nothing was answered"

    def full(users: int) -> PhaseFigures:
        return replace(step(users, count=1000, shed=600) if users > 150 else step(users, count=400), users=users)

    climb = climbed(Climb(first_users=100), full)
    told = climb.told()
    assert told["broke"] is False
    assert "takes no more" in told["why"]
    assert told["last_good_users"] == 150


def test_a_service_that_breaks_with_one_user_ends_the_climb_there() -> None:
    climb = climbed(Climb(first_users=40), lambda users: step(users, error=60))
    assert climb.first_bad == 1
    assert climb.last_good is None


def test_nothing_broke_is_said_with_the_highest_load() -> None:
    climb = climbed(Climb(first_users=10, most_users=33), step)
    assert [each.users for each in climb.steps] == [10, 15, 22, 33]
    told = climb.told()
    assert (told["broke"], told["first_bad_users"]) == (False, None)
    assert told["why"] == "nothing broke up to 33 users, the most that were allowed"


def test_a_generator_at_its_end_ends_the_climb_and_is_no_break_of_the_service() -> None:
    climb = Climb(first_users=10)
    busy = measure(phase(users=10), [played(steadily(120, lambda k: 1.0), busiest_share=1.0)], plan())
    climb.observe(busy)
    assert climb.next_users() is None
    assert climb.told()["broke"] is False
    assert climb.told()["why"].startswith("the generator could not")


def test_every_step_is_told() -> None:
    climb = Climb(first_users=10)
    climb.observe(step(10))
    climb.observe(step(15, error=60))
    assert climb.told()["steps"] == [
        {
            "users": 10, "answered_per_s": pytest.approx(1.19), "p50_s": 1.0, "p95_s": 1.0, "p99_s": ONE,
            "error_rate": 0.0, "shed_rate": 0.0, "why": "",
        },
        {
            "users": 15, "answered_per_s": pytest.approx(0.59, abs=0.02), "p50_s": 1.0, "p95_s": 1.0, "p99_s": ONE,
            "error_rate": 0.5, "shed_rate": 0.0, "why": "errors 50.0 %",
        },
    ]  # fmt: skip
    assert Climb(first_users=1).told()["why"] == "the climb was not ended"
