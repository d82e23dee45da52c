"""The table of marks and the replicas agree, operators are obeyed, and what has changed is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.change import LiftMark, SetMark
from tidegate.policy.decisions import Admit, Reason, Refuse, Wait
from tidegate.policy.marks import MarkKind, MarksConfig, OverLengthConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.outliers import OutliersConfig
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig

TWO = PathConfig(replicas=(replica_config("a1"), replica_config("a2")))
REPLICA = MarkKind.REPLICA


def start(config: PathConfig = TWO) -> Events:
    return Events(Path(config, 0.0))


def told(events: Events) -> list[str]:
    return [each.text for each in events.path.oversight.patrol(events.now)]


def places(events: Events, count: int = 6) -> set[str]:
    found = set()
    for _ in range(count):
        decision = events.offer(max_tokens=10)
        assert isinstance(decision, Admit)
        found.add(decision.permit.replica)
    for _ in range(count):
        events.settle(len(events.live) - 1, Outcome.OK)
    return found


def test_an_operator_sets_a_replica_aside_and_takes_it_back() -> None:
    events = start()
    diff = events.path.apply(SetMark(REPLICA, "a1", 60.0, "maintenance", "ticket 7"), events.now)
    assert diff.lines == ("replica a1: marked maintenance for 60 s: ticket 7",)
    assert places(events) == {"a2"}
    assert events.path.view(events.now)["mark_kinds"] == {
        "session": 0,
        "user": 0,
        "tenant": 0,
        "source": 0,
        "model": 0,
        "replica": 1,
    }
    assert events.path.apply(LiftMark(REPLICA, "a1"), events.now).lines == ("replica a1: mark lifted",)
    assert places(events) == {"a1", "a2"}
    assert events.path.apply(LiftMark(REPLICA, "a1"), events.now).lines == ()


def test_what_an_operator_sets_aside_serves_in_no_panic_either() -> None:
    events = start(PathConfig(replicas=TWO.replicas[:1]))
    events.path.apply(SetMark(REPLICA, "a1", 2.0, "maintenance", "ticket 7"), events.now)
    assert isinstance(events.offer(max_tokens=10), Wait)
    assert not events.path.upstreams["a"].is_in_panic(events.now)
    events.pass_time(2.0)
    assert len(events.live) == 1


def test_a_mark_that_runs_out_ends_with_a_slow_start_and_is_told() -> None:
    events = start()
    events.path.apply(SetMark(REPLICA, "a1", 5.0, "maintenance", "ticket 7"), events.now)
    assert told(events) == ["mark set: replica a1: maintenance for 5 s: ticket 7"]
    events.pass_time(5.0)
    assert told(events) == ["mark ended: replica a1: maintenance: over"]
    one = events.path.upstreams["a"].replicas[0]
    assert (one.marked_until, one.warm_at) == (0.0, 15.0)


def test_a_ticket_that_waits_for_a_marked_replica_goes_when_its_mark_ends() -> None:
    events = start(PathConfig(replicas=(replica_config("a1", sequences=1), replica_config("a2", sequences=1))))
    events.path.apply(SetMark(REPLICA, "a1", 5.0, "maintenance", "ticket 7"), events.now)
    events.offer(max_tokens=10)
    events.offer(max_tokens=10)
    assert events.path.next_wakeup() == 5.0
    events.pass_time(5.0)
    assert [permit.replica for _, permit in events.live] == ["a2", "a1"]


def test_the_gate_itself_ends_a_mark_that_is_over() -> None:
    events = start()
    events.path.apply(SetMark(REPLICA, "a1", 5.0, "maintenance", "ticket 7"), events.now)
    events.now = 6.0
    assert "a1" in places(events, 8)
    assert events.path.upstreams["a"].replicas[0].marked_until == 0.0


def test_an_operator_blocks_a_session() -> None:
    events = start()
    events.path.apply(SetMark(MarkKind.SESSION, "s", 60.0, "abuse", "ticket 7"), events.now)
    decision = events.offer(session="s", max_tokens=10)
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.detail) == (Reason.BLOCKED, "This session is marked abuse: ticket 7.")
    assert isinstance(events.offer(user="s", max_tokens=10), Admit)


@pytest.mark.parametrize("ttl_s", [0.0, -1.0, 86_401.0, float("nan")])
def test_a_mark_has_a_time_and_not_too_long_a_one(ttl_s: float) -> None:
    with pytest.raises(ValueError, match="ttl_s lies above 0"):
        start().path.apply(SetMark(MarkKind.SESSION, "s", ttl_s, "abuse", "ticket 7"), 0.0)


def test_a_replica_that_does_not_exist_cannot_be_marked() -> None:
    with pytest.raises(ValueError, match="no replica is called 'b'; there are a1, a2"):
        start().path.apply(SetMark(REPLICA, "b", 1.0, "r", "e"), 0.0)
    with pytest.raises(ValueError, match="there are none"):
        start(PathConfig()).path.apply(SetMark(REPLICA, "b", 1.0, "r", "e"), 0.0)


def test_marks_on_replicas_outlive_a_restart_and_a_reload() -> None:
    events = start()
    events.path.apply(SetMark(REPLICA, "a1", 60.0, "maintenance", "ticket 7"), events.now)
    after = Path(TWO, 1000.0)
    after.restore(events.path.dump(events.now), 1000.0)
    assert after.upstreams["a"].replicas[0].marked_until == 1060.0
    events.apply(replace(TWO, replicas=TWO.replicas[1:]))
    events.apply(TWO)
    assert events.path.upstreams["a"].replicas[1].config.name in {"a1", "a2"}
    assert {each.name: each.marked_until for each in events.path.upstreams["a"].replicas} == {"a1": 60.0, "a2": 0.0}


def test_a_breaker_that_moves_and_a_panic_are_told_once() -> None:
    events = start()
    assert told(events) == []
    while events.path.upstreams["a"].replicas[1].breaker.generation == 0:
        events.offer(max_tokens=10)
        outcome = Outcome.ENGINE_ERROR if events.live[0][1].replica == "a2" else Outcome.OK
        events.settle(0, outcome, retry=False)
    events.now = 1.0
    assert told(events) == ["breaker of a2: open"]
    events.observe("a1", ready=False)
    events.now = 2.0
    [text] = told(events)
    assert text.startswith("panic in a: most replicas are kept away")
    assert events.path.view(events.now)["panics"] == {"a": True}
    events.now = 3.0
    assert told(events) == []
    events.observe("a1", ready=True)
    for _ in range(3):
        events.now += 0.5
        decision = events.offer(max_tokens=10)
        assert isinstance(decision, Admit)
        events.settle(0, Outcome.OK)
    events.now = 6.0
    assert "panic in a is over" in told(events)


def test_it_looks_once_in_a_window_however_many_readings_come() -> None:
    events = start(replace(TWO, outliers=OutliersConfig(window_s=5.0)))
    one = events.path.upstreams["a"].replicas[0]
    events.observe("a1", ready=True)
    one.breaker.generation = 7
    for _ in range(3):
        events.now += 1.0
        events.observe("a1", ready=True)
    assert told(events) == []
    events.now = 5.0
    assert told(events) == ["breaker of a1: closed"]


def test_prompts_that_never_fit_are_counted_at_arrival_and_when_they_are_counted_in_the_queue() -> None:
    marks = MarksConfig(over_length=OverLengthConfig(count=2))
    config = PathConfig(replicas=(replica_config("a1", sequences=1),), marks=marks)
    events = start(config)
    events.offer(prompt_tokens=10, max_tokens=10)
    events.offer(prompt_tokens=10, max_tokens=10, source="10.0.0.1")
    assert events.waiting
    events.amend(0, 100_000)
    refused = events.offer(prompt_tokens=100_000, max_tokens=10, source="10.0.0.1")
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.NEVER_FITS
    blocked = events.offer(prompt_tokens=10, max_tokens=10, source="10.0.0.1")
    assert isinstance(blocked, Refuse)
    assert blocked.reason is Reason.BLOCKED


def test_a_good_answer_takes_the_counted_ones_back() -> None:
    config = replace(TWO, marks=MarksConfig(over_length=OverLengthConfig(count=2)))
    events = start(config)
    for _ in range(5):
        events.offer(prompt_tokens=100_000, max_tokens=10, source="10.0.0.1")
        assert isinstance(events.offer(prompt_tokens=10, max_tokens=10, source="10.0.0.1"), Admit)
        events.settle(0, Outcome.OK)
    assert len(events.path.marks) == 0


def test_a_ban_that_becomes_a_mark_like_any_other_lets_go_who_waits() -> None:
    events = start(PathConfig(replicas=(replica_config("a1"), replica_config("a2"))))
    events.path.apply(SetMark(MarkKind.REPLICA, "a2", 60.0, "maintenance", "asked for"), events.now)
    events.observe("a1", ready=False)
    assert isinstance(events.offer(max_tokens=10), Wait)
    events.path.apply(SetMark(MarkKind.REPLICA, "a2", 60.0, "outlier", "found by hand"), events.now)
    events.advance()
    assert [permit.replica for _, permit in events.live] == ["a2"]
