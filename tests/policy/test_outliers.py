"""Who is unlike its peers is set aside; what all do alike marks nobody; never too many, never the last."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.policy.machine import replica_config
from tidegate.policy.balance.balancer import BalanceConfig
from tidegate.policy.breaker import BreakerConfig, State
from tidegate.policy.ejections import Ejections, EjectionsConfig
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.marks import MarkKind, Marks, MarksConfig
from tidegate.policy.outcomes import Verdict
from tidegate.policy.outliers import MOST_CLOSED, Outliers, OutliersConfig
from tidegate.policy.pace import Pace
from tidegate.policy.replica import Replica

CONFIG = OutliersConfig()


class Fleet:
    """Some replicas, and who judges them."""

    def __init__(self, count: int, config: OutliersConfig = CONFIG, bounds: EjectionsConfig | None = None) -> None:
        self.now = 0.0
        self.marks = Marks(MarksConfig())
        self.ejections = Ejections(self.marks, bounds or EjectionsConfig())
        self.outliers = Outliers(self.ejections, config)
        self.replicas = [self.made(f"a{number}") for number in range(count)]
        paces = [each.pace for each in self.replicas if each.pace is not None]
        for pace in paces:
            pace.peers = tuple(each for each in paces if each is not pace)

    def made(self, name: str) -> Replica:
        breaker = BreakerConfig(consecutive_failures=1000, min_calls=1000)
        made = Replica(replica_config(name), LimitConfig(), PrefillConfig(), breaker, BalanceConfig().slow_start_s)
        made.pace = Pace()
        return made

    def answer(self, replica: Replica, seconds: float, count: int = 5, *, whole: bool = False) -> None:
        assert replica.pace is not None
        for _ in range(count):
            if whole:
                replica.pace.note_whole(0, 68, seconds)
            else:
                replica.pace.note_first(512, seconds)

    def end(self, replica: Replica, verdict: Verdict, count: int) -> None:
        for _ in range(count):
            replica.breaker.record(replica.breaker.generation, verdict, self.now, slow=False, may_open=False)

    def judge(self) -> None:
        self.now += 1.0
        self.outliers.judge(self.replicas, self.now)

    def marked(self) -> list[str]:
        return [each.name for each in self.replicas if each.marked_until > self.now]


@pytest.mark.parametrize("whole", [False, True])
def test_three_windows_in_a_row_of_three_times_its_peers_set_a_replica_aside(whole: bool) -> None:
    fleet = Fleet(3)
    for _ in range(3):
        assert fleet.marked() == []
        for replica in fleet.replicas:
            fleet.answer(replica, 3.5 if replica.name == "a2" else 1.0, whole=whole)
        fleet.judge()
    assert fleet.marked() == ["a2"]
    mark = fleet.marks.find(MarkKind.REPLICA, "a2", fleet.now)
    assert mark is not None
    assert (mark.reason, mark.until) == ("outlier", fleet.now + 5.0)
    assert mark.evidence == "3.5 × as slow as its peers in 3 windows"


def test_a_window_like_its_peers_breaks_the_row() -> None:
    fleet = Fleet(2)
    for seconds in (9.0, 9.0, 1.0, 9.0, 9.0):
        fleet.answer(fleet.replicas[0], 1.0)
        fleet.answer(fleet.replicas[1], seconds)
        fleet.judge()
    assert fleet.marked() == []


def test_what_all_do_alike_marks_nobody_and_so_does_what_is_fast_enough() -> None:
    for fast, slow in ((20.0, 30.0), (0.001, 0.09)):
        fleet = Fleet(2)
        for _ in range(10):
            fleet.answer(fleet.replicas[0], fast)
            fleet.answer(fleet.replicas[1], slow)
            fleet.judge()
        assert fleet.marked() == []


def test_too_few_samples_and_figures_that_are_old_compare_with_nothing() -> None:
    fleet = Fleet(2)
    fleet.answer(fleet.replicas[0], 1.0)
    fleet.judge()
    for _ in range(2):
        fleet.answer(fleet.replicas[1], 9.0, count=1)
        fleet.judge()
    assert fleet.marked() == []
    fleet.now += 20.0
    for _ in range(5):
        fleet.answer(fleet.replicas[1], 9.0)
        fleet.judge()
    assert fleet.marked() == []


def test_who_measures_nothing_is_no_outlier() -> None:
    fleet = Fleet(2)
    fleet.replicas[1].pace = None
    fleet.answer(fleet.replicas[0], 1.0)
    fleet.judge()
    assert fleet.marked() == []


def test_one_alone_and_one_that_is_down_are_not_judged() -> None:
    alone, down = Fleet(1), Fleet(2)
    down.replicas[0].ready = False
    for fleet in (alone, down):
        for _ in range(5):
            fleet.answer(fleet.replicas[-1], 9.0)
            fleet.judge()
        assert fleet.marked() == []


def test_switched_off_nobody_is_judged() -> None:
    fleet = Fleet(2, replace(CONFIG, enabled=False, windows=1))
    for _ in range(5):
        fleet.answer(fleet.replicas[0], 1.0)
        fleet.answer(fleet.replicas[1], 9.0)
        fleet.judge()
    assert fleet.marked() == []


def test_who_fails_a_fifth_of_its_calls_while_its_peers_do_not_is_set_aside() -> None:
    fleet = Fleet(3)
    for _ in range(3):
        for replica in fleet.replicas:
            bad = 3 if replica.name == "a1" else 0
            fleet.end(replica, Verdict.BAD, bad)
            fleet.end(replica, Verdict.GOOD, 12 - bad)
        fleet.judge()
    assert fleet.marked() == ["a1"]
    mark = fleet.marks.find(MarkKind.REPLICA, "a1", fleet.now)
    assert mark is not None
    assert mark.evidence == "9 of 36 calls failed, of its peers' 0 of 72"


def test_failures_that_all_have_are_the_requests_fault() -> None:
    fleet = Fleet(3)
    for _ in range(6):
        for replica in fleet.replicas:
            fleet.end(replica, Verdict.BAD, 4 if replica.name == "a1" else 2)
            fleet.end(replica, Verdict.GOOD, 8)
        fleet.judge()
    assert fleet.marked() == []


def test_a_few_failures_of_many_calls_are_no_outlier() -> None:
    fleet = Fleet(2)
    for _ in range(6):
        fleet.end(fleet.replicas[0], Verdict.BAD, 1)
        for replica in fleet.replicas:
            fleet.end(replica, Verdict.GOOD, 9)
        fleet.judge()
    assert fleet.marked() == []


def test_a_replica_without_a_pace_can_fail_more_than_its_peers_too() -> None:
    fleet = Fleet(2, replace(CONFIG, windows=1))
    fleet.replicas[0].pace = None
    fleet.end(fleet.replicas[0], Verdict.BAD, 20)
    fleet.end(fleet.replicas[1], Verdict.GOOD, 20)
    fleet.judge()
    assert fleet.marked() == ["a0"]


def test_each_time_it_is_set_aside_for_longer_up_to_the_most_and_a_good_while_forgets_it() -> None:
    fleet = Fleet(2, bounds=EjectionsConfig(base_s=5.0, max_s=12.0))
    replica, times = fleet.replicas[0], []
    for _ in range(4):
        assert fleet.ejections.eject(fleet.replicas, replica, "outlier", "e", fleet.now)
        times.append(replica.marked_until - fleet.now)
        fleet.now = replica.marked_until
        replica.end_mark(fleet.now)
    assert times == [5.0, 10.0, 12.0, 12.0]
    fleet.now += 12.1
    assert fleet.ejections.eject(fleet.replicas, replica, "outlier", "e", fleet.now)
    assert replica.marked_until - fleet.now == 5.0
    assert fleet.ejections.since(replica) == fleet.now
    fleet.ejections.keep(set())
    assert fleet.ejections.since(replica) == 0.0


@pytest.mark.parametrize(("count", "may"), [(1, 0), (2, 1), (3, 1), (6, 1), (7, 2), (10, 3)])
def test_a_share_of_the_fleet_may_go_at_least_one_of_two_and_never_the_last(count: int, may: int) -> None:
    fleet = Fleet(count)
    gone = [fleet.ejections.eject(fleet.replicas, each, "outlier", "e", 0.0) for each in fleet.replicas]
    assert sum(gone) == may


def test_those_that_a_breaker_keeps_away_count_too_and_nobody_is_set_aside_twice() -> None:
    fleet = Fleet(3)
    fleet.replicas[0].breaker.state = State.OPEN
    assert not fleet.ejections.eject(fleet.replicas, fleet.replicas[1], "outlier", "e", 0.0)
    other = Fleet(10)
    assert other.ejections.eject(other.replicas, other.replicas[0], "outlier", "e", 0.0)
    assert not other.ejections.eject(other.replicas, other.replicas[0], "outlier", "e", 0.0)


def test_of_a_large_fleet_a_part_is_looked_at_each_time_and_everybody_in_turn() -> None:
    fleet = Fleet(3 * MOST_CLOSED)
    for _ in range(3):
        for replica in fleet.replicas:
            fleet.answer(replica, 1.0, count=3)
        fleet.judge()
    closed_at = sorted(each.pace.first_at for each in fleet.replicas if each.pace is not None)
    assert closed_at == [1.0] * MOST_CLOSED + [2.0] * MOST_CLOSED + [3.0] * MOST_CLOSED


def test_what_is_gone_is_forgotten() -> None:
    fleet = Fleet(2)
    for _ in range(4):
        fleet.answer(fleet.replicas[0], 1.0)
        fleet.answer(fleet.replicas[1], 9.0)
        fleet.judge()
        fleet.outliers.keep({"a0"})
    assert fleet.marked() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_samples": 0},
        {"windows": 0},
        {"min_calls": 0},
        {"window_s": 0.0},
        {"slow_factor": 1.0},
        {"failure_factor": 1.0},
        {"failure_share": 0.0},
        {"failure_share": 1.1},
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="outliers need"):
        replace(CONFIG, **wrong)  # type: ignore[arg-type]  # one field, of its own type


@pytest.mark.parametrize("wrong", [{"base_s": 0.0}, {"base_s": 61.0}, {"max_ejected_share": 1.1}])
def test_impossible_bounds_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="ejections need"):
        replace(EjectionsConfig(), **wrong)


class EjectionMachine(RuleBasedStateMachine):
    """Safety: never more than the share, never the last. Liveness: left alone, everybody is usable again."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet(5, replace(CONFIG, windows=1, min_samples=1))

    @rule(seconds=st.floats(0.0, 20.0))
    def pass_time(self, seconds: float) -> None:
        self.fleet.now += seconds
        for replica in self.fleet.replicas:
            if 0.0 < replica.marked_until <= self.fleet.now:
                replica.end_mark(self.fleet.now)

    @rule(number=st.integers(0, 4), is_up=st.booleans())
    def go_up_or_down(self, number: int, is_up: bool) -> None:
        # What goes down by itself is no ejection: only go so far that the bound still means something.
        up = sum(each.ready for each in self.fleet.replicas)
        if is_up or up > 3:
            self.fleet.replicas[number].ready = is_up

    @rule(slow=st.sets(st.integers(0, 4)), seconds=st.floats(1.0, 90.0))
    def run(self, slow: set[int], seconds: float) -> None:
        before = {each.name for each in self.fleet.replicas if each.marked_until > self.fleet.now}
        for number, replica in enumerate(self.fleet.replicas):
            self.fleet.answer(replica, seconds if number in slow else 1.0, 1)
        self.fleet.outliers.judge(self.fleet.replicas, self.fleet.now)
        new = {each.name for each in self.fleet.replicas if each.marked_until > self.fleet.now} - before
        up = [each for each in self.fleet.replicas if each.serves]
        away = [each for each in up if not each.is_usable(self.fleet.now)]
        assert not new or len(away) <= max(1, int(0.3 * len(up)))
        assert not new or len(away) < len(up)

    @invariant()
    def table_and_replicas_agree(self) -> None:
        now = self.fleet.now
        for replica in self.fleet.replicas:
            mark = self.fleet.marks.find(MarkKind.REPLICA, replica.name, now)
            assert (mark is None) == (replica.marked_until <= now)
            assert mark is None or mark.until <= now + 60.0

    def teardown(self) -> None:
        self.fleet.now += 61.0
        for replica in self.fleet.replicas:
            replica.ready = True
            assert replica.is_usable(self.fleet.now)


EjectionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEjections = EjectionMachine.TestCase
