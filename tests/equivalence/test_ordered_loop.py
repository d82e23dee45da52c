from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.equivalence.ordered_loop import LoopClock, OrderedLoop


@pytest.fixture
def loop() -> Iterator[OrderedLoop]:
    loop = OrderedLoop()
    yield loop
    loop.close()


def test_timers_of_one_moment_fire_in_the_order_in_which_they_were_set(loop: OrderedLoop) -> None:
    fired: list[int] = []
    for number in range(100):
        loop.call_at(1.0, fired.append, number)
    loop.run_until(2.0)
    assert fired == [*range(100)]


def test_every_timer_fires_at_exactly_its_time(loop: OrderedLoop) -> None:
    times = [index / 3 + 1e-10 * repeat for index in range(1, 100) for repeat in range(3)]
    seen: list[float] = []
    for at in reversed(times):
        loop.call_at(at, lambda: seen.append(loop.time()))
    loop.run_until(100.0)
    assert seen == times


def test_a_cancelled_timer_does_not_fire(loop: OrderedLoop) -> None:
    fired: list[int] = []
    loop.call_at(1.0, fired.append, 1).cancel()
    loop.call_at(1.0, fired.append, 2)
    loop.run_until(2.0)
    assert fired == [2]


def test_an_error_in_a_callback_ends_the_run(loop: OrderedLoop) -> None:
    loop.call_at(1.0, [].pop)
    with pytest.raises(IndexError):
        loop.run_until(2.0)


def test_the_clock_of_a_loop_is_the_loops(loop: OrderedLoop) -> None:
    clock, seen = LoopClock(loop), list[float]()
    clock.schedule(3.0, lambda: clock.schedule(1.0, lambda: seen.append(clock.now)))
    loop.run_until(4.0)
    assert seen == [3.0]
    with pytest.raises(AttributeError, match="its own clock"):
        clock.now = 5.0
