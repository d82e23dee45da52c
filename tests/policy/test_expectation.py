"""How much of a declared bound is reserved when lengths are learned."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.expectation import (
    ALL_WEIGHT,
    FADE_S,
    FIRST_CAUTION,
    MOST_KEPT_TENANTS,
    MOST_TENANTS,
    OWN_WEIGHT,
    STEP,
    UNSEEN,
    Expectation,
)
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig

CONFIG = SlotsConfig(mode="learned", quantile=0.5)


def asked(tenant: str = "t1", *, streaming: bool = True) -> Request:
    return Request(1, "a", 0.0, 0, tenant=tenant, streaming=streaming)


def taught(*outputs: int, tenant: str = "t1", most: int = 1000) -> Expectation:
    expectation = Expectation(CONFIG)
    for output in outputs:
        # The declared bound as expectation: the level stays where it is.
        expectation.learn(asked(tenant), most, output, most)
    return expectation


def test_without_answers_the_declared_bound_is_reserved() -> None:
    assert Expectation(CONFIG).reserved_tokens(asked(), 1000) == 1000


def test_few_answers_count_as_much_as_they_are_credible() -> None:
    own = taught(*[100] * 10)
    everybody = (10 * 100 + ALL_WEIGHT * 1000) / (10 + ALL_WEIGHT)
    assert own.reserved_tokens(asked("another"), 1000) == round(everybody)
    assert own.reserved_tokens(asked(), 1000) == round((10 * 100 + OWN_WEIGHT * everybody) / (10 + OWN_WEIGHT))


def test_many_answers_outweigh_what_is_declared() -> None:
    assert taught(*[100] * 400).reserved_tokens(asked(), 1000) < 110


def test_a_tenant_with_other_answers_is_told_from_the_rest() -> None:
    expectation = taught(*[50] * 200, tenant="short")
    for _ in range(200):
        expectation.learn(asked("long"), 1000, 900, 1000)
    assert expectation.reserved_tokens(asked("short"), 1000) < 150
    assert expectation.reserved_tokens(asked("long"), 1000) > 800


def test_an_answer_that_went_on_is_judged_among_those_that_went_on_too() -> None:
    expectation = taught(*[100] * 300, *[600] * 100)
    assert expectation.reserved_tokens(asked(), 1000) < 150
    assert 550 < expectation.reserved_tokens(asked(), 1000, 101) < 700


@given(
    outputs=st.lists(st.integers(1, 1000), max_size=60),
    most=st.integers(1, 1000),
    written=st.integers(0, 1200),
    caution=st.floats(0.0, 1.0),
    streaming=st.booleans(),
)
def test_what_is_reserved_exceeds_what_is_written_and_never_the_bound(
    outputs: list[int], most: int, written: int, caution: float, streaming: bool
) -> None:
    expectation = taught(*outputs)
    expectation.caution = caution
    written = min(written, most)
    reserved = expectation.reserved_tokens(asked(streaming=streaming), most, written)
    assert reserved <= most
    assert reserved > written or written == most


def test_an_answer_that_comes_whole_gets_more_because_it_cannot_grow() -> None:
    expectation = taught(*range(10, 410))
    watched = expectation.reserved_tokens(asked(), 1000)
    unseen = expectation.reserved_tokens(asked(streaming=False), 1000)
    assert watched < 240
    assert unseen > 10 + UNSEEN * 400


def test_a_request_for_no_output_reserves_none_and_teaches_nothing() -> None:
    expectation = taught(*[100] * 10)
    assert expectation.reserved_tokens(asked(), 0) == 0
    expectation.learn(asked(), 0, 0, 0)
    assert expectation.view()["answers"] == 10


def test_in_the_long_run_the_quantile_of_the_streams_fits_whatever_the_traffic_does() -> None:
    expectation, rng = Expectation(replace(CONFIG, quantile=0.8)), Random(1)
    covered = []
    for number in range(6000):
        median = 100 if number < 3000 else 300
        output = min(1000, max(1, round(median * rng.lognormvariate(0.0, 0.8))))
        expected = expectation.reserved_tokens(asked(), 1000)
        expectation.learn(asked(), 1000, output, expected)
        covered.append(output <= expected)
    for part in (covered[500:3000], covered[3500:]):
        assert 0.77 < sum(part) / len(part) < 0.83
    view = expectation.view()
    # The first answers found the whole bound reserved, so there was nothing to judge.
    unjudged = 6000 - expectation.judged
    assert 0 < unjudged < 100
    assert (view["judged"], view["covered"]) == (6000 - unjudged, sum(covered) - unjudged)


def test_only_streams_whose_reservation_was_learned_move_the_level() -> None:
    expectation = taught(*[100] * 10)
    assert (expectation.level, expectation.judged) == (0.5, 0)
    expectation.learn(asked(streaming=False), 1000, 900, 200)
    assert (expectation.level, expectation.judged) == (0.5, 0)
    expectation.learn(asked(), 1000, 900, 200)
    assert (expectation.level, expectation.judged, expectation.covered) == (0.5 + STEP * 0.5, 1, 0)
    expectation.learn(asked(), 1000, 200, 200)
    assert expectation.level == pytest.approx(0.5)
    assert (expectation.judged, expectation.covered) == (2, 1)


def test_preemptions_bring_caution_which_doubles_up_to_worst_case_and_fades() -> None:
    expectation = taught(*[100] * 400)
    learned = expectation.reserved_tokens(asked(), 1000)
    expectation.observe(3, 10.0)
    assert expectation.caution == FIRST_CAUTION
    assert expectation.reserved_tokens(asked(), 1000) == round(learned + FIRST_CAUTION * (1000 - learned))
    for now in (10.0, 10.0, 10.0):
        expectation.observe(1, now)
    assert expectation.caution == 1.0
    assert expectation.reserved_tokens(asked(), 1000) == 1000
    expectation.observe(0, 10.0 + FADE_S / 2)
    assert expectation.caution == pytest.approx(0.5)
    expectation.observe(0, 10.0 + 2 * FADE_S)
    assert expectation.reserved_tokens(asked(), 1000) == learned


def test_a_new_quantile_begins_anew_and_the_same_one_goes_on() -> None:
    expectation = taught(*[100] * 10)
    expectation.learn(asked(), 1000, 900, 200)
    moved = expectation.level
    expectation.reconfigure(replace(CONFIG, default_max_tokens=7))
    assert (expectation.level, expectation.config.default_max_tokens) == (moved, 7)
    expectation.reconfigure(replace(CONFIG, quantile=0.8))
    assert expectation.level == 0.8


def test_only_so_many_tenants_are_told_apart_and_the_latest_of_them_outlive_a_restart() -> None:
    expectation = Expectation(CONFIG)
    for number in range(MOST_TENANTS):
        expectation.learn(asked(f"t{number}"), 1000, 100, 1000)
    expectation.learn(asked("t0"), 1000, 100, 1000)
    expectation.learn(asked("one more"), 1000, 100, 1000)
    assert expectation.view()["tenants"] == MOST_TENANTS
    stranger = expectation.reserved_tokens(asked("stranger"), 1000)
    assert expectation.reserved_tokens(asked("t1"), 1000) == stranger
    assert expectation.reserved_tokens(asked("t0"), 1000) < stranger
    kept = expectation.dump()["own"]
    assert isinstance(kept, dict)
    latest = [f"t{number}" for number in range(MOST_TENANTS + 2 - MOST_KEPT_TENANTS, MOST_TENANTS)]
    assert [*kept] == [*latest, "t0", "one more"]


def test_what_outlives_a_restart_stays_far_below_one_message_to_the_parent() -> None:
    expectation = Expectation(CONFIG)
    for tenant in range(MOST_TENANTS):
        for most in (64, 256, 1024, 4096):
            for output in range(1, 101):
                expectation.learn(asked(f"t{tenant}"), most, output, most)
    assert len(json.dumps(expectation.dump())) < 200_000


def test_what_was_learned_outlives_a_restart_as_json() -> None:
    before = taught(*range(10, 200))
    before.learn(asked(), 1000, 900, 200)
    after = Expectation(CONFIG)
    after.restore(json.loads(json.dumps(before.dump())))
    assert after.dump() == before.dump()
    assert after.reserved_tokens(asked(), 1000) == before.reserved_tokens(asked(), 1000)


@pytest.mark.parametrize(
    "broken",
    [{"level": "high"}, {"level": 2.0}, {"own": []}, {"all": {}}, {"own": {"t1": {"version": 0}}}],
)
def test_what_no_dump_gives_is_refused_and_changes_nothing(broken: dict[str, object]) -> None:
    expectation = taught(*[100] * 10)
    state = expectation.dump()
    with pytest.raises(ValueError, match=r"Expectation\.dump|history of answer lengths"):
        expectation.restore(state | broken)
    assert expectation.dump() == state
