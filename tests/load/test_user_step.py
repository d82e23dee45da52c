from __future__ import annotations

from itertools import islice

import pytest

from tests.load.made_samples import phase, plan
from tidegate.errors import ConfigError
from tidegate.load.named_plans import find_plan
from tidegate.load.phase import Kind
from tidegate.load.plan_options import PlanOptions
from tidegate.load.user_step import user_step


def test_a_step_has_the_users_asks_of_the_plans_own_steps_in_words_of_its_own() -> None:
    ramp = find_plan("three-phase", PlanOptions(seed=3))
    step = user_step(ramp, 7, 30.0)
    assert (step.name, step.kind, step.users, step.duration_s, step.count) == ("users-7", Kind.STEP, 7, 30.0, None)
    assert len(list(islice(step.source.asks(3), 500))) == 500
    other = user_step(ramp, 8, 30.0)
    assert next(step.source.asks(3)).body != next(other.source.asks(3)).body


def test_the_asks_of_an_open_phase_are_asked_without_their_times() -> None:
    step = user_step(find_plan("steady-load", PlanOptions(seed=3)), 2, 10.0)
    assert {ask.due_s for ask in islice(step.source.asks(3), 50)} == {0.0}


def test_a_closed_loop_of_another_source_is_taken_as_it_is() -> None:
    closed = phase(users=4)
    assert user_step(plan(closed), 2, 10.0).source is closed.source


def test_a_plan_whose_requests_end_makes_no_users() -> None:
    with pytest.raises(ConfigError, match="no users can be made of it"):
        user_step(plan(phase()), 2, 10.0)
