from __future__ import annotations

import pytest

from tidegate.load.distribution import distribution
from tidegate.load.figure_text import count_text, p99_text, rate_text, ratio_text, seconds_text, share_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.000_012_3, "0.012 ms"),
        (0.0123, "12.3 ms"),
        (0.9996, "1000 ms"),
        (1.0, "1.00 s"),
        (99.96, "100 s"),
        (119.0, "119 s"),
        (120.0, "2 min 00 s"),
        (7265.0, "2 h 01 min"),
    ],
)
def test_times_have_three_digits_and_a_fitting_unit(value: float | None, text: str) -> None:
    assert seconds_text(value) == text


def test_what_is_above_zero_never_reads_as_zero() -> None:
    assert share_text(0.0) == "0 %"
    assert share_text(0.000_000_1) == "0.00001 %"
    assert share_text(0.0012) == "0.12 %"
    assert share_text(1.0) == "100 %"


def test_rates_ratios_and_counts() -> None:
    assert (rate_text(12.345), ratio_text(1.5), count_text(1234567)) == ("12.3/s", "1.50×", "1\u202f234\u202f567")
    assert (rate_text(None), ratio_text(None), count_text(None), share_text(None)) == ("–",) * 4


def test_a_p99_of_few_values_says_that_it_is_the_largest() -> None:
    assert p99_text(distribution([1.0, 2.0])) == "2.00 s (largest of 2)"
    assert p99_text(distribution([1.0] * 100)) == "1.00 s"
    assert p99_text(None) == "–"
