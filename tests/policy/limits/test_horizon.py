"""How far ahead an engine reads: as far as answers keep their pace, and no further than was ever needed."""

from __future__ import annotations

import pytest

from tidegate.policy.limits.horizon import STEP_S, WINDOW_ANSWERS, Horizon
from tidegate.policy.limits.prefill import PrefillConfig

CONFIG = PrefillConfig(horizon_s=0.15, most_horizon_s=0.2, late_share=0.1)


def judged(horizon: Horizon, late: int, at: float, *, reached: bool = True) -> bool:
    """One window of answers, of which so many were slow. Whether it moved."""
    horizon.is_reached = reached
    moved = [horizon.judge(late=number < late, now=at) for number in range(WINDOW_ANSWERS)]
    assert not any(moved[:-1])
    return moved[-1]


def test_it_grows_by_steps_while_answers_keep_their_pace_and_somebody_waits() -> None:
    horizon = Horizon(CONFIG)
    for step in range(1, 6):
        assert judged(horizon, 0, float(step))
        assert horizon.value_s == pytest.approx(0.15 + step * STEP_S)
    assert not judged(horizon, 0, 6.0), "the most"
    assert horizon.value_s == 0.2


def test_where_nobody_waited_for_it_there_is_no_reason_to_grow() -> None:
    horizon = Horizon(CONFIG)
    assert not judged(horizon, 0, 1.0, reached=False)
    assert horizon.value_s == 0.15


def test_slow_answers_take_all_of_it_back_at_once() -> None:
    horizon = Horizon(CONFIG)
    for step in range(1, 4):
        judged(horizon, 0, float(step))
    assert judged(horizon, 3, 5.0)
    assert horizon.value_s == 0.15
    assert not judged(horizon, WINDOW_ANSWERS, 6.0), "never less than what is configured"


def test_between_the_two_shares_it_stays() -> None:
    horizon = Horizon(CONFIG)
    judged(horizon, 0, 1.0)
    assert not judged(horizon, 2, 2.0)
    assert not judged(horizon, 1, 3.0)
    assert horizon.value_s == pytest.approx(0.16)


def test_it_moves_once_a_second_at_most_and_then_by_all_answers_since() -> None:
    horizon = Horizon(CONFIG)
    judged(horizon, 0, 1.0)
    horizon.is_reached = True
    assert not any(horizon.judge(late=True, now=1.5) for _ in range(50))
    assert horizon.judge(late=False, now=2.0)
    assert horizon.value_s == 0.15


def test_a_reload_brings_it_between_the_new_bounds() -> None:
    horizon = Horizon(CONFIG)
    horizon.reconfigure(PrefillConfig(horizon_s=0.3, most_horizon_s=0.5))
    assert horizon.value_s == 0.3
    horizon.reconfigure(PrefillConfig(horizon_s=0.01, most_horizon_s=0.1))
    assert horizon.value_s == 0.1
