"""Who has work and does not get on with it is set aside; who is only busy is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit
from tidegate.policy.marks import MarkKind
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.reading import Reading
from tidegate.policy.replica import Replica
from tidegate.policy.watchdog import WatchdogConfig

TWO = PathConfig(replicas=(replica_config("a1"), replica_config("a2")))


def start(config: PathConfig = TWO) -> tuple[Events, Replica, Replica]:
    events = Events(Path(config, 0.0))
    one, two = events.path.upstreams["a"].replicas
    return events, one, two


def place(events: Events, on: str, **fields: object) -> None:
    """Offer until one goes to ``on``; the others end at once."""
    for _ in range(50):
        decision = events.offer(**({"max_tokens": 10} | fields))
        assert isinstance(decision, Admit)
        if decision.permit.replica == on:
            return
        events.settle(len(events.live) - 1, Outcome.CLIENT_LEFT)
    raise AssertionError(f"nothing goes to {on}")


def read(events: Events, seconds: float, moves: dict[str, bool], every_s: float = 0.5) -> None:
    """Readings of both for a while; KV of those that move grows."""
    for _ in range(round(seconds / every_s)):
        events.pass_time(every_s)
        for name, is_moving in moves.items():
            kv = int(events.now * 100) if is_moving else 100
            events.path.observe(name, Reading(events.now, running=1, kv_used_tokens=kv), events.now)
            events.advance()


def reason(events: Events, name: str) -> str | None:
    mark = events.path.marks.find(MarkKind.REPLICA, name, events.now)
    return None if mark is None else mark.reason


def test_an_engine_whose_readings_tell_is_stalled_when_they_stand_still_under_work() -> None:
    events, one, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    read(events, 9.5, {"a1": False, "a2": True})
    assert reason(events, "a1") is None
    read(events, 2.0, {"a1": False, "a2": True})
    assert reason(events, "a1") == "no_progress"
    assert one.marked_until > events.now
    events.offer(max_tokens=10)
    assert events.live[-1][1].replica == "a2"


def test_a_long_prefill_on_readings_that_move_is_no_stall() -> None:
    events, _, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    read(events, 60.0, {"a1": True, "a2": False})
    assert (reason(events, "a1"), reason(events, "a2")) == (None, None)


@pytest.mark.parametrize("streaming", [False, True])
def test_silence_without_figures_says_nothing_by_itself(streaming: bool) -> None:
    events, _, _ = start()
    place(events, "a1", streaming=streaming)
    for _ in range(100):
        events.pass_time(1.0)
        for name in ("a1", "a2"):
            events.path.observe(name, Reading(events.now), events.now)
    assert reason(events, "a1") is None


@pytest.mark.parametrize("streaming", [False, True])
def test_without_figures_an_attempt_that_lasts_three_times_what_its_like_took_tells(streaming: bool) -> None:
    events, _, two = start()
    for _ in range(20):
        (two.whole if not streaming else two.first_token).learn(10.0, 8.0)
    place(events, "a1", streaming=streaming)
    for _ in range(23):
        events.pass_time(1.0)
        events.path.observe("a1", Reading(events.now), events.now)
    assert reason(events, "a1") is None
    for _ in range(3):
        events.pass_time(1.0)
        events.path.observe("a1", Reading(events.now), events.now)
    assert reason(events, "a1") == "no_progress"


def test_tokens_of_a_stream_that_the_driver_sees_are_motion() -> None:
    events, _, two = start()
    for _ in range(20):
        two.whole.learn(10.0, 1.0)
    place(events, "a1")
    events.first_token(0)
    for _ in range(40):
        events.pass_time(1.0)
        events.path.oversight.note_streams({"a1": events.now, "gone": events.now})
        assert events.path.oversight.patrol(events.now) == []
    assert reason(events, "a1") is None
    events.pass_time(11.0)
    events.path.oversight.patrol(events.now)
    assert reason(events, "a1") == "no_progress"


def test_it_is_taken_back_as_soon_as_it_moves_and_serves_slowly_at_first() -> None:
    events, one, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    read(events, 12.0, {"a1": False, "a2": True})
    assert reason(events, "a1") == "no_progress"
    events.path.progress(events.live[0][1], Progress.FIRST_TOKEN, events.now + 0.1)
    events.pass_time(1.1)
    told = [each.text for each in events.path.oversight.patrol(events.now)]
    assert "mark ended: replica a1: no_progress: lifted" in told
    assert one.is_usable(events.now)
    assert one.warm_at > events.now


def test_it_is_taken_back_when_its_process_is_a_new_one() -> None:
    events, one, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    read(events, 12.0, {"a1": False, "a2": True})
    events.settle(0, Outcome.CUT)
    events.observe("a1", ready=False)
    events.pass_time(1.0)
    events.observe("a1", ready=True)
    events.pass_time(1.0)
    events.observe("a1", ready=True)
    assert one.is_usable(events.now)


def test_still_stalled_when_its_mark_ends_it_is_set_aside_for_longer() -> None:
    events, one, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    read(events, 30.0, {"a1": False, "a2": True})
    assert reason(events, "a1") == "no_progress"
    assert one.marked_until - events.now > 5.0


def test_the_last_one_is_not_set_aside_and_neither_is_one_without_work_or_while_it_is_off() -> None:
    alone = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    read(alone, 2.0, {"a1": True})
    place(alone, "a1")
    read(alone, 30.0, {"a1": False})
    assert reason(alone, "a1") is None
    idle, _, _ = start()
    read(idle, 2.0, {"a1": True, "a2": True})
    read(idle, 30.0, {"a1": False, "a2": False})
    assert len(idle.path.marks) == 0
    off, _, _ = start(replace(TWO, watchdog=WatchdogConfig(enabled=False)))
    read(off, 2.0, {"a1": True, "a2": True})
    place(off, "a1")
    read(off, 30.0, {"a1": False, "a2": True})
    assert len(off.path.marks) == 0


def test_an_abort_that_is_not_confirmed_is_no_work() -> None:
    events, _, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    events.settle(0, Outcome.CLIENT_LEFT, still_running=True)
    read(events, 30.0, {"a1": False, "a2": True})
    assert reason(events, "a1") is None


@pytest.mark.parametrize("wrong", [{"stall_s": 0.0}, {"blind_factor": 1.0}])
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="watchdog needs"):
        replace(WatchdogConfig(), **wrong)  # type: ignore[arg-type]  # one field, of its own type


def test_an_engine_that_stood_still_before_and_moved_on_is_given_longer() -> None:
    events, one, _ = start()
    read(events, 2.0, {"a1": True, "a2": True})
    place(events, "a1")
    one.motion.gap_s = 6.0
    read(events, 17.5, {"a1": False, "a2": True})
    assert reason(events, "a1") is None
    read(events, 2.0, {"a1": False, "a2": True})
    assert reason(events, "a1") == "no_progress"
