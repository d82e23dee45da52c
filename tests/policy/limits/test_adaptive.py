"""The adaptive limit: grows while it is used and latency is good, shrinks on overload, and always recovers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.limits.adaptive import AdaptiveLimit, LimitConfig
from tidegate.policy.outcomes import LimitSignal

CONFIG = LimitConfig()
SAMPLE, DROP = LimitSignal.SAMPLE, LimitSignal.DROP


def window(limit: AdaptiveLimit, now: float, ratio: float, *, used: bool = True, samples: int = 10) -> None:
    """A window of samples at ``ratio`` × the predicted second; ``used``: something was held back by it."""
    if used:
        assert not limit.allows(int(limit.value), 1)
    for _ in range(samples):
        limit.record(SAMPLE, ratio, 1.0, now)


def known(config: LimitConfig = CONFIG) -> AdaptiveLimit:
    """A limit whose latency is known and whose first window is over."""
    limit = AdaptiveLimit(config)
    window(limit, 0.0, 2.0, used=False)
    return limit


def test_it_starts_where_the_engine_says_and_within_the_bounds() -> None:
    assert AdaptiveLimit(CONFIG).value == 32
    assert AdaptiveLimit(CONFIG, 256).value == 256
    assert AdaptiveLimit(CONFIG, 1).value == CONFIG.minimum
    assert AdaptiveLimit(CONFIG, 10_000).value == CONFIG.maximum


def test_it_grows_by_half_until_the_first_shrink_and_by_a_root_after_it() -> None:
    limit = known()
    window(limit, 2.0, 1.0)
    assert limit.value == 48
    window(limit, 4.0, 3.0)
    shrunk = limit.value
    assert shrunk < 48
    window(limit, 6.0, 1.0)
    assert limit.value == shrunk + shrunk**0.5


def test_it_grows_only_if_it_held_something_back() -> None:
    limit = known()
    window(limit, 2.0, 1.0, used=False)
    assert limit.value == 32
    window(limit, 4.0, 1.0)
    assert limit.value == 48


def test_between_the_two_bounds_of_the_ratio_it_stands_still() -> None:
    limit = known()
    for now, ratio in enumerate((1.51, 2.0, 2.5), start=1):
        window(limit, 2.0 * now, ratio)
    assert limit.value == 32


@pytest.mark.parametrize(("ratio", "factor"), [(2.6, 0.9), (3.125, 0.8), (100.0, 0.5)])
def test_it_shrinks_by_how_far_latency_is_off_and_by_no_more_than_half(ratio: float, factor: float) -> None:
    limit = known()
    window(limit, 2.0, ratio)
    assert limit.value == pytest.approx(32 * factor)


def test_many_pushbacks_in_one_window_shrink_it_once() -> None:
    limit = known()
    for _ in range(100):
        limit.record(DROP, 0.0, 0.0, 2.0)
    assert limit.value == pytest.approx(32 * 0.9)
    limit.record(DROP, 0.0, 0.0, 3.0)
    assert limit.value == pytest.approx(32 * 0.81)


def test_a_pushback_outweighs_good_latency() -> None:
    limit = known()
    assert not limit.allows(32, 1)
    limit.record(DROP, 0.0, 0.0, 0.5)
    window(limit, 2.0, 1.0)
    assert limit.value == pytest.approx(32 * 0.9)


def test_a_window_waits_for_its_samples_and_for_its_second() -> None:
    limit = known()
    window(limit, 2.0, 1.0, samples=9)
    assert limit.value == 32
    window(limit, 2.0, 1.0, samples=1)
    assert limit.value == 48
    window(limit, 2.99, 1.0)
    assert limit.value == 48
    window(limit, 3.0, 1.0, samples=1)
    assert limit.value == 72


def test_one_straggler_in_ten_does_not_shrink_it() -> None:
    limit = known()
    window(limit, 2.0, 50.0, samples=4)
    window(limit, 2.0, 1.0, samples=6)
    assert limit.value == 48


def test_latencies_under_the_noise_floor_are_no_sign_of_overload() -> None:
    limit = known()
    assert not limit.allows(32, 1)
    for _ in range(10):
        limit.record(SAMPLE, 0.09, 0.001, 2.0)
    assert limit.value == 48


def test_ignored_endings_close_no_window() -> None:
    limit = known()
    assert not limit.allows(32, 1)
    for _ in range(100):
        limit.record(LimitSignal.IGNORE, 100.0, 1.0, 5.0)
    assert limit.value == 32


def test_a_request_wider_than_the_limit_goes_alone() -> None:
    limit = AdaptiveLimit(CONFIG)
    assert limit.allows(0, 100)
    assert not limit.allows(1, 100)
    assert limit.allows(31, 1)
    assert not limit.allows(32, 1)


def test_switched_off_it_allows_everything() -> None:
    assert AdaptiveLimit(replace(CONFIG, enabled=False)).allows(10_000, 1)


def test_pushbacks_before_anything_is_known_do_not_keep_it_low() -> None:
    limit = AdaptiveLimit(CONFIG)
    for now in range(100):
        limit.record(DROP, 0.0, 0.0, float(now))
    assert limit.value == CONFIG.minimum
    for now in range(100, 200):
        assert not limit.allows(int(limit.value), 1)
        for _ in range(10):
            limit.record(SAMPLE, 5.0, 0.0, float(now))
    assert limit.value == 32


def test_while_nothing_is_known_it_does_not_grow_past_its_start() -> None:
    limit = AdaptiveLimit(CONFIG)
    for now in range(100):
        assert not limit.allows(32, 1)
        for _ in range(10):
            limit.record(SAMPLE, 5.0, 0.0, float(now))
    assert limit.value == 32


def test_a_reload_brings_it_within_the_new_bounds() -> None:
    limit = AdaptiveLimit(CONFIG, 256)
    limit.reconfigure(replace(CONFIG, maximum=100))
    assert limit.value == 100
    limit.reconfigure(replace(CONFIG, minimum=200, initial=200))
    assert limit.value == 200


@given(
    st.lists(
        st.tuples(st.sampled_from(LimitSignal), st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 3), st.booleans())
    )
)
def test_it_stays_within_its_bounds_and_always_recovers(
    events: list[tuple[LimitSignal, float, float, float, bool]],
) -> None:
    limit, now = AdaptiveLimit(CONFIG), 0.0
    for signal, observed_s, predicted_s, passed_s, used in events:
        now += passed_s
        if used:
            limit.allows(10_000, 1)
        limit.record(signal, observed_s, predicted_s, now)
        assert CONFIG.minimum <= limit.value <= CONFIG.maximum
    before = limit.value
    for _ in range(400):
        now += 1.0
        window(limit, now, 1.0)
    assert limit.value == CONFIG.maximum >= before


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum": 0},
        {"initial": 3},
        {"maximum": 31},
        {"grow_below": 1.0},
        {"shrink_above": 1.5},
        {"window_s": 0.0},
        {"window_samples": 0},
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="limits need"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type
