"""What is kept over a restart, on whatever clock it comes back."""

from __future__ import annotations

import json

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.marks import Mark, MarkKind
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig

CONFIG = PathConfig(replicas=(replica_config("a1"), replica_config("a2")))


def experienced() -> Events:
    """A path that has learned something of its replicas and marked a session."""
    events = Events(Path(CONFIG, 1000.0), now=1000.0)
    for number in range(100):
        events.offer(prompt_tokens=100 + 10 * (number % 20), max_tokens=50)
        prompt_tokens = events.live[0][0].prompt_tokens
        events.pass_time(0.1 + prompt_tokens / 1000)
        events.first_token(0)
        events.pass_time(0.5)
        events.settle(0, Outcome.OK)
    events.path.marks.add(Mark(MarkKind.SESSION, "s1", "high_risk", events.now + 25.0, "5 timeouts"), events.now)
    events.path.margin.value = 0.75
    return events


def test_what_was_learned_comes_back_on_another_clock() -> None:
    before = experienced()
    state = json.loads(json.dumps(before.path.dump(before.now)))
    after = Path(CONFIG, 5.0)
    after.restore(state, 5.0)
    assert after.margin.value == 0.75
    mark = after.marks.find(MarkKind.SESSION, "s1", 5.0)
    assert mark is not None
    assert mark.until == pytest.approx(30.0)
    for old, new in zip(before.path.upstreams["a"].replicas, after.upstreams["a"].replicas, strict=True):
        assert new.first_token.predict_s(300) == pytest.approx(old.first_token.predict_s(300))
        assert new.whole.predict_s(10) == pytest.approx(old.whole.predict_s(10))
        assert new.token_s == pytest.approx(old.token_s) != 0.0
        assert new.bound_tokens == pytest.approx(old.bound_tokens)
        assert new.limit.value == old.limit.value
    assert after.dump(5.0)["replicas"] == state["replicas"]


def test_marks_that_ran_out_meanwhile_stay_away() -> None:
    before = experienced()
    state = before.path.dump(before.now + 30.0)
    after = Path(CONFIG, 0.0)
    after.restore(state, 0.0)
    assert len(after.marks) == 0


def test_a_replica_that_is_unknown_now_is_left_out_and_a_new_one_starts_fresh() -> None:
    before = experienced()
    after = Path(PathConfig(replicas=(replica_config("a2"), replica_config("a3"))), 0.0)
    after.restore(before.path.dump(before.now), 0.0)
    known, fresh = after.upstreams["a"].replicas
    assert known.first_token.samples > 0
    assert fresh.first_token.samples == 0


def test_values_out_of_bounds_are_brought_within_them() -> None:
    before = experienced()
    state = before.path.dump(before.now)
    replicas = state["replicas"]
    assert isinstance(replicas, dict)
    replicas["a1"]["limit"] = [1e9]
    state["margin"] = 0.1
    after = Path(CONFIG, 0.0)
    after.restore(state, 0.0)
    assert after.upstreams["a"].replicas[0].limit.value == CONFIG.limit.maximum
    assert after.margin.value == CONFIG.margin.least


FIT = [0.0] * 6


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"marks": [], "margin": "0.8", "replicas": {}},
        {"marks": None, "margin": 0.8, "replicas": {}},
        {"marks": [], "margin": 0.8, "replicas": []},
        {"marks": [{}], "margin": 0.8, "replicas": {}},
        {"marks": [7], "margin": 0.8, "replicas": {}},
        {
            "marks": [{"kind": "planet", "key": "k", "reason": "r", "remaining_s": 1.0, "evidence": "e"}],
            "margin": 0.8,
            "replicas": {},
        },
        {"marks": [], "margin": 0.8, "replicas": {"a1": {}}},
        {"marks": [], "margin": 0.8, "replicas": {"a1": 7}},
        {"marks": [], "margin": 0.8, "replicas": {"a1": {"limit": [], "first_token": FIT, "whole": FIT}}},
        {"marks": [], "margin": 0.8, "replicas": {"a1": {"limit": ["x"], "first_token": FIT, "whole": FIT}}},
        {"marks": [], "margin": 0.8, "replicas": {"a1": {"limit": [9.0], "first_token": [1.0], "whole": FIT}}},
        {"marks": [], "margin": 0.8, "replicas": {"a1": {"limit": [9.0], "first_token": [None] * 6, "whole": FIT}}},
    ],
)
def test_anything_else_is_refused_with_one_kind_of_error_and_the_path_goes_on(state: dict[str, object]) -> None:
    path = Path(CONFIG, 0.0)
    with pytest.raises(ValueError):
        path.restore(state, 0.0)
    events = Events(path)
    events.offer(max_tokens=10)
    events.first_token(0)
    events.finish()
