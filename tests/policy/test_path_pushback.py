"""A replica that says it is full gets nothing for a second, while another one has room."""

from __future__ import annotations

from tests.policy.machine import Events, replica_config
from tidegate.policy.attempts import PUSHBACK_S
from tidegate.policy.decisions import Admit
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig


def pushed_back(*names: str) -> tuple[Events, str]:
    """One of these replicas has refused a request; which one."""
    events = Events(Path(PathConfig(replicas=tuple(replica_config(name) for name in names)), 0.0))
    decision = events.offer(prompt_tokens=100, max_tokens=10)
    assert isinstance(decision, Admit)
    events.settle(0, Outcome.PUSHBACK, retry=False)
    return events, decision.permit.replica


def served_by(events: Events) -> str:
    decision = events.offer(prompt_tokens=100, max_tokens=10)
    assert isinstance(decision, Admit)
    events.settle(len(events.live) - 1, Outcome.OK)
    return decision.permit.replica


def test_the_one_that_refused_is_passed_over_though_it_has_the_least_to_do() -> None:
    events, refused = pushed_back("a1", "a2")
    assert {served_by(events) for _ in range(9)} == {"a1", "a2"} - {refused}
    # It comes back by a slow start, as after any mark.
    events.pass_time(PUSHBACK_S)
    served_by(events)
    events.pass_time(10.0)
    assert {served_by(events) for _ in range(9)} == {"a1", "a2"}


def test_a_lone_replica_is_not_passed_over() -> None:
    events, refused = pushed_back("a1")
    assert served_by(events) == refused
