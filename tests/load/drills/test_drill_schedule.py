"""When drills run again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.errors import ConfigError
from tidegate.load.drills.drill_schedule import every_s, next_run

FIRST = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(("text", "seconds"), [("24h", 86400), ("30min", 1800), ("7d", 604800), (" 90 s ", 90)])
def test_times_are_read(text: str, seconds: float) -> None:
    assert every_s(text) == seconds


@pytest.mark.parametrize("text", ["", "daily", "24", "-1h", "1h30", "30s"])
def test_what_is_no_time_or_too_short_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="--every"):
        every_s(text)


def test_the_next_run_is_one_period_after_the_first() -> None:
    assert next_run(FIRST, 3600.0, FIRST + timedelta(minutes=4)) == FIRST + timedelta(hours=1)


def test_times_that_passed_while_a_run_lasted_are_left_out() -> None:
    assert next_run(FIRST, 3600.0, FIRST + timedelta(hours=2, minutes=4)) == FIRST + timedelta(hours=3)


def test_a_clock_that_was_set_back_brings_no_run_in_the_past() -> None:
    assert next_run(FIRST, 3600.0, FIRST - timedelta(hours=5)) == FIRST + timedelta(hours=1)
