from __future__ import annotations

from collections import Counter

import pytest

from tidegate.simulate.lookalike import DURATION_S, LIKENESSES, lookalike, sample
from tidegate.simulate.quantile import quantile


@pytest.mark.parametrize("name", LIKENESSES)
def test_lengths_have_the_quantiles_of_the_trace(name: str) -> None:
    arrivals = [arrival for seed in range(5) for arrival in lookalike(name, seed)]
    for quantiles, lengths in (
        (LIKENESSES[name].prompt, sorted(arrival.prompt_tokens for arrival in arrivals)),
        (LIKENESSES[name].output, sorted(arrival.output_tokens for arrival in arrivals)),
    ):
        wanted = dict(quantiles)
        assert quantile(lengths, 0.5) == pytest.approx(wanted[0.5], rel=0.1)
        assert quantile(lengths, 0.9) == pytest.approx(wanted[0.9], rel=0.15)
        assert lengths[-1] <= wanted[1.0]


@pytest.mark.parametrize("name", LIKENESSES)
def test_the_mean_rate_is_that_of_the_trace(name: str) -> None:
    arrivals = [arrival for seed in range(20) for arrival in lookalike(name, seed)]
    assert len(arrivals) / (20 * DURATION_S) == pytest.approx(LIKENESSES[name].rate_per_s, rel=0.15)


def test_code_traffic_is_silent_most_seconds_and_bursts_far_above_its_mean() -> None:
    """In the trace 73 % of the seconds are empty and the peak second holds 28 times the mean."""
    seconds = Counter(int(arrival.at) for arrival in lookalike("azure-code", 1))
    assert 0.6 < 1 - len(seconds) / DURATION_S < 0.85
    assert max(seconds.values()) > 10 * LIKENESSES["azure-code"].rate_per_s


def test_equal_seeds_give_equal_traffic() -> None:
    assert lookalike("azure-conv", 3) == lookalike("azure-conv", 3) != lookalike("azure-conv", 4)


def test_the_ends_of_the_distribution_are_reached() -> None:
    quantiles = ((0.0, 10), (0.5, 100), (1.0, 1000))
    assert [sample(quantiles, uniform) for uniform in (0.0, 0.25, 0.5, 0.75, 0.999999)] == [10, 32, 100, 316, 1000]
