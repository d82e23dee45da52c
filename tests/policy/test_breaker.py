"""When a replica is left alone, and that it is always tried again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidegate.policy.breaker import SHORT_TOKENS, TRANSITIONS, Breaker, BreakerConfig, State
from tidegate.policy.outcomes import Verdict
from tidegate.policy.request import NEVER

CONFIG = BreakerConfig()
GOOD, BAD, SILENT = Verdict.GOOD, Verdict.BAD, Verdict.SILENT


def end(
    breaker: Breaker, verdict: Verdict, now: float, *, times: int = 1, slow: bool = False, may_open: bool = True
) -> None:
    """Place and end so many attempts."""
    for _ in range(times):
        assert breaker.allows(now)
        breaker.take()
        breaker.record(breaker.generation, verdict, now, slow=slow, may_open=may_open)


def state_of(breaker: Breaker) -> State:
    """Read anew each time: a type checker takes an attribute that was asserted to stay as it was."""
    return breaker.state


def opened(config: BreakerConfig = CONFIG, now: float = 0.0) -> Breaker:
    breaker = Breaker(config)
    end(breaker, BAD, now, times=config.consecutive_failures)
    assert state_of(breaker) is State.OPEN
    return breaker


def test_five_failures_in_a_row_open_it_and_a_good_one_breaks_the_row() -> None:
    breaker = Breaker(CONFIG)
    end(breaker, BAD, 0.0, times=4)
    end(breaker, GOOD, 0.0)
    end(breaker, BAD, 0.0, times=4)
    assert state_of(breaker) is State.CLOSED
    end(breaker, BAD, 0.0)
    assert state_of(breaker) is State.OPEN


def test_half_of_twenty_calls_bad_opens_it_and_a_little_less_does_not() -> None:
    for bad, state in ((9, State.CLOSED), (10, State.OPEN)):
        breaker = Breaker(replace(CONFIG, consecutive_failures=100))
        end(breaker, GOOD, 0.0, times=20 - bad)
        end(breaker, BAD, 0.0, times=bad)
        assert state_of(breaker) is state


def test_under_the_least_number_of_calls_the_share_does_not_count() -> None:
    breaker = Breaker(replace(CONFIG, consecutive_failures=100))
    end(breaker, BAD, 0.0, times=19)
    assert state_of(breaker) is State.CLOSED


def test_sixty_of_a_hundred_calls_slow_open_it_though_all_are_good() -> None:
    breaker = Breaker(CONFIG)
    end(breaker, GOOD, 0.0, times=40)
    end(breaker, GOOD, 0.0, times=59, slow=True)
    assert state_of(breaker) is State.CLOSED
    end(breaker, GOOD, 0.0, slow=True)
    assert state_of(breaker) is State.OPEN


def test_calls_older_than_the_window_are_forgotten() -> None:
    breaker = Breaker(replace(CONFIG, consecutive_failures=100))
    end(breaker, BAD, 5.0, times=19)
    end(breaker, GOOD, 15.1, times=20)
    end(breaker, BAD, 15.1, times=19)
    assert state_of(breaker) is State.CLOSED
    end(breaker, BAD, 15.1)
    assert state_of(breaker) is State.OPEN


def test_silent_endings_count_for_nothing() -> None:
    breaker = Breaker(CONFIG)
    end(breaker, BAD, 0.0, times=4)
    end(breaker, SILENT, 0.0, times=100, slow=True)
    assert state_of(breaker) is State.CLOSED
    end(breaker, BAD, 0.0)
    assert state_of(breaker) is State.OPEN


def test_the_last_replica_stays_in_and_opens_as_soon_as_another_stands_in() -> None:
    breaker = Breaker(CONFIG)
    end(breaker, BAD, 0.0, times=50, may_open=False)
    assert state_of(breaker) is State.CLOSED
    end(breaker, GOOD, 0.0, times=1)
    assert state_of(breaker) is State.CLOSED
    end(breaker, BAD, 0.0)
    assert state_of(breaker) is State.OPEN


def test_switched_off_it_never_opens() -> None:
    breaker = Breaker(replace(CONFIG, enabled=False))
    end(breaker, BAD, 0.0, times=1000)
    assert state_of(breaker) is State.CLOSED


def test_it_stays_open_until_the_cooldown_ends_and_then_needs_three_good_probes_the_first_alone() -> None:
    breaker = opened()
    assert not breaker.allows(0.99)
    assert breaker.allows(1.0)
    assert state_of(breaker) is State.HALF_OPEN
    assert breaker.take()
    assert not breaker.allows(1.0)
    assert not breaker.take()
    breaker.record(breaker.generation, GOOD, 1.0, slow=False, may_open=True)
    assert [breaker.take(), breaker.take(), breaker.take()] == [True, True, False]
    assert not breaker.allows(1.0)
    breaker.record(breaker.generation, GOOD, 1.0, slow=False, may_open=True)
    assert state_of(breaker) is State.HALF_OPEN
    assert not breaker.allows(1.0)
    breaker.record(breaker.generation, GOOD, 1.0, slow=False, may_open=True)
    assert state_of(breaker) is State.CLOSED
    assert not breaker.take()


def test_a_connection_that_nobody_took_opens_it_at_once_or_after_as_many_as_configured() -> None:
    for wanted in (1, 2, 5):
        breaker = Breaker(replace(CONFIG, connect_failures=wanted))
        for count in range(1, wanted + 1):
            assert state_of(breaker) is State.CLOSED
            breaker.record(breaker.generation, BAD, 0.0, slow=False, may_open=True, unreachable=True)
            assert (state_of(breaker) is State.OPEN) is (count == wanted)


def test_a_probe_that_streams_is_judged_by_its_first_byte() -> None:
    breaker = opened(replace(CONFIG, probes=2))
    for _ in range(2):
        assert breaker.allows(1.0)
        assert breaker.take()
        breaker.answered(breaker.generation, 1.5, slow=False)
    assert state_of(breaker) is State.CLOSED
    breaker.answered(breaker.generation - 1, 1.5, slow=True)
    breaker.answered(breaker.generation, 1.5, slow=True)
    assert state_of(breaker) is State.CLOSED


def test_a_slow_probe_is_no_good_probe() -> None:
    by_first_byte, by_end = opened(), opened()
    for breaker in (by_first_byte, by_end):
        assert breaker.allows(1.0)
        breaker.take()
    by_first_byte.answered(by_first_byte.generation, 1.5, slow=True)
    by_end.record(by_end.generation, GOOD, 1.5, slow=True, may_open=True)
    assert {state_of(by_first_byte), state_of(by_end)} == {State.OPEN}


def test_what_holds_no_probes_place_can_fail_a_half_open_one_and_no_more() -> None:
    breaker = opened()
    assert breaker.allows(1.0)
    for verdict in (GOOD, GOOD, GOOD, SILENT):
        breaker.record(breaker.generation, verdict, 1.0, slow=False, may_open=True, probe=False)
    assert state_of(breaker) is State.HALF_OPEN
    breaker.record(breaker.generation, BAD, 1.0, slow=False, may_open=True, probe=False)
    assert state_of(breaker) is State.OPEN


def test_a_half_open_one_takes_short_requests_first_and_any_after_a_second() -> None:
    breaker = opened()
    assert not breaker.allows(1.0, SHORT_TOKENS + 1)
    assert breaker.allows(1.0, SHORT_TOKENS)
    assert breaker.opens_at(1.0) == 2.0
    assert breaker.allows(2.0, SHORT_TOKENS + 1)
    assert breaker.opens_at(2.0) == NEVER


def test_a_process_that_has_come_back_is_tried_at_once_and_as_patiently_as_a_new_one() -> None:
    breaker = opened()
    for _ in range(5):
        end(breaker, BAD, breaker.open_until)
    breaker.look_again(10.0)
    assert state_of(breaker) is State.HALF_OPEN
    breaker.look_again(10.0)
    end(breaker, BAD, 10.0)
    assert breaker.open_until == 11.0


def test_enough_good_ones_in_a_row_close_an_open_one_that_is_used_in_a_panic() -> None:
    breaker = opened()

    def ends(*verdicts: Verdict) -> State:
        for verdict in verdicts:
            breaker.record(breaker.generation, verdict, 0.5, slow=False, may_open=False, probe=False)
        return breaker.state

    assert ends(GOOD, GOOD, BAD, GOOD, SILENT, GOOD) is State.OPEN
    assert ends(GOOD) is State.CLOSED


def test_the_tallies_are_those_of_the_window() -> None:
    breaker = Breaker(replace(CONFIG, consecutive_failures=100))
    end(breaker, GOOD, 0.0, times=3)
    end(breaker, BAD, 5.0, times=2)
    assert breaker.tallies(5.0) == (5, 2)
    assert breaker.tallies(12.0) == (2, 2)


def test_a_silent_probe_gives_its_place_back() -> None:
    breaker = opened()
    for _ in range(10):
        end(breaker, SILENT, 5.0)
    assert state_of(breaker) is State.HALF_OPEN
    end(breaker, GOOD, 5.0, times=3)
    assert state_of(breaker) is State.CLOSED


def test_each_failed_probe_doubles_the_cooldown_up_to_the_most_and_a_while_closed_forgets_it() -> None:
    breaker, now, waits = opened(), 0.0, []
    for _ in range(6):
        waits.append(breaker.open_until - now)
        now = breaker.open_until
        end(breaker, BAD, now)
    assert waits == [1.0, 2.0, 3.0, 3.0, 3.0, 3.0]
    for rest_s, wait_s in ((0.0, 3.0), (10.0, 3.0), (10.1, 1.0)):
        now = breaker.open_until
        end(breaker, GOOD, now, times=3)
        end(breaker, BAD, now + rest_s, times=5)
        assert breaker.open_until - now - rest_s == pytest.approx(wait_s)


def test_a_result_from_before_the_last_transition_is_ignored() -> None:
    breaker = Breaker(CONFIG)
    before = breaker.generation
    end(breaker, BAD, 0.0, times=5)
    assert breaker.allows(5.0)
    for verdict in (BAD, GOOD, GOOD, GOOD):
        breaker.record(before, verdict, 5.0, slow=False, may_open=True)
    assert state_of(breaker) is State.HALF_OPEN
    end(breaker, GOOD, 5.0, times=3)
    assert state_of(breaker) is State.CLOSED


def test_a_closed_breaker_starts_with_a_clean_window() -> None:
    breaker = opened()
    end(breaker, GOOD, 5.0, times=3)
    end(breaker, BAD, 5.0, times=4)
    assert state_of(breaker) is State.CLOSED


def test_a_reload_with_fewer_probes_closes_a_breaker_that_has_had_enough_of_them() -> None:
    breaker = opened()
    end(breaker, GOOD, 5.0, times=2)
    breaker.reconfigure(replace(CONFIG, probes=2), 6.0)
    assert state_of(breaker) is State.CLOSED


def test_a_reload_shortens_a_cooldown_that_is_longer_than_the_new_most() -> None:
    breaker = opened(replace(CONFIG, cooldown_s=50.0, max_cooldown_s=60.0))
    breaker.reconfigure(replace(CONFIG, max_cooldown_s=8.0), 10.0)
    assert breaker.open_until == 18.0
    breaker.reconfigure(replace(CONFIG, max_cooldown_s=20.0), 12.0)
    assert breaker.open_until == 18.0


@pytest.mark.parametrize("cooled", [False, True])
def test_switching_it_off_lets_everybody_through_at_once(cooled: bool) -> None:
    breaker = opened()
    if cooled:
        assert breaker.allows(5.0)
    breaker.reconfigure(replace(CONFIG, enabled=False), 5.0)
    assert state_of(breaker) is State.CLOSED
    end(breaker, BAD, 5.0, times=50)
    assert state_of(breaker) is State.CLOSED


def test_a_reload_with_another_window_does_not_count_calls_of_the_old_one_for_ever() -> None:
    breaker = Breaker(replace(CONFIG, window_s=1.0, consecutive_failures=100))
    end(breaker, BAD, 100.0, times=19)
    breaker.reconfigure(replace(CONFIG, window_s=10.0, consecutive_failures=100), 100.0)
    end(breaker, GOOD, 200.0)
    end(breaker, BAD, 200.0)
    assert state_of(breaker) is State.CLOSED


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_calls": 0},
        {"consecutive_failures": 0},
        {"connect_failures": 0},
        {"probes": 0},
        {"window_s": 0.0},
        {"cooldown_s": 0.0},
        {"cooldown_s": 61.0},
        {"failure_share": 0.0},
        {"failure_share": 1.1},
        {"slow_share": 0.0},
        {"slow_share": 1.1},
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="breaker"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type


def test_every_state_can_be_left() -> None:
    assert {state for state, _ in TRANSITIONS} == set(State)


@dataclass
class _Attempt:
    generation: int
    probe: bool


class BreakerMachine(RuleBasedStateMachine):
    """Safety: probes are bounded and nothing passes an open breaker. Liveness: left alone, it admits again."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = Breaker(CONFIG)
        self.out: list[_Attempt] = []

    def try_to_send(self) -> bool:
        if not self.breaker.allows(self.now):
            return False
        generation = self.breaker.generation
        self.out.append(_Attempt(generation, self.breaker.take()))
        return True

    @rule(seconds=st.floats(0, 30))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def send(self) -> None:
        waits = self.breaker.state is State.OPEN and self.now < self.breaker.open_until
        assert not (self.try_to_send() and waits)

    @precondition(lambda self: self.out)
    @rule(index=st.integers(0, 100), verdict=st.sampled_from(Verdict), slow=st.booleans(), may_open=st.booleans())
    def finish(self, index: int, verdict: Verdict, slow: bool, may_open: bool) -> None:
        attempt = self.out.pop(index % len(self.out))
        was = self.breaker.state
        self.breaker.record(attempt.generation, verdict, self.now, slow=slow, may_open=may_open, probe=attempt.probe)
        if was is State.CLOSED and not may_open:
            assert self.breaker.state is State.CLOSED

    @rule()
    def send_in_a_panic(self) -> None:
        self.out.append(_Attempt(self.breaker.generation, self.breaker.take()))

    @precondition(lambda self: any(each.probe for each in self.out))
    @rule(slow=st.booleans())
    def show_a_first_byte(self, slow: bool) -> None:
        attempt = next(each for each in self.out if each.probe)
        attempt.probe = False
        self.breaker.answered(attempt.generation, self.now, slow=slow)

    @rule()
    def come_back(self) -> None:
        self.breaker.look_again(self.now)
        assert self.breaker.state is not State.OPEN

    @rule(verdict=st.sampled_from(Verdict), count=st.integers(1, 30))
    def run_many(self, verdict: Verdict, count: int) -> None:
        for _ in range(count):
            if self.try_to_send():
                self.breaker.record(self.out.pop().generation, verdict, self.now, slow=False, may_open=True)

    @rule(
        config=st.sampled_from(
            [CONFIG, replace(CONFIG, probes=1), replace(CONFIG, window_s=1.0, cooldown_s=1.0, max_cooldown_s=2.0)]
        ),
        enabled=st.booleans(),
    )
    def reload(self, config: BreakerConfig, enabled: bool) -> None:
        self.breaker.reconfigure(replace(config, enabled=enabled), self.now)

    @rule()
    def an_idle_breaker_always_admits_again(self) -> None:
        for attempt in self.out:
            self.breaker.record(attempt.generation, SILENT, self.now, slow=False, may_open=True, probe=attempt.probe)
        self.out.clear()
        if self.breaker.state is State.OPEN:
            self.now = max(self.now, self.breaker.open_until)
        assert self.try_to_send()

    @rule()
    def a_replica_that_is_well_is_closed_again(self) -> None:
        self.an_idle_breaker_always_admits_again()
        self.breaker.record(self.out.pop().generation, GOOD, self.now, slow=False, may_open=True)
        for _ in range(CONFIG.probes):
            if self.try_to_send():
                self.breaker.record(self.out.pop().generation, GOOD, self.now, slow=False, may_open=True)
        assert self.breaker.state is State.CLOSED

    @invariant()
    def probes_stay_within_their_number(self) -> None:
        if self.breaker.state is State.HALF_OPEN:
            live = [each for each in self.out if each.generation == self.breaker.generation]
            assert sum(each.probe for each in live) <= CONFIG.probes

    @invariant()
    def an_open_breaker_names_an_end_that_is_near(self) -> None:
        if self.breaker.state is State.OPEN:
            assert self.breaker.open_until <= self.now + CONFIG.max_cooldown_s


BreakerMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestBreaker = BreakerMachine.TestCase
