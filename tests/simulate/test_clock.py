from __future__ import annotations

from tidegate.simulate.clock import Clock


def test_actions_run_by_time_and_those_of_one_moment_in_order_of_asking() -> None:
    clock = Clock()
    seen: list[str] = []
    for at, name in ((2.0, "c"), (1.0, "a"), (2.0, "d"), (1.0, "b")):
        clock.schedule(at, seen.append, name)
    clock.run()
    assert seen == ["a", "b", "c", "d"]
    assert (clock.now, clock.events) == (2.0, 4)


def test_an_action_may_ask_for_another_and_never_in_the_past() -> None:
    clock = Clock()
    seen: list[str] = []

    def again() -> None:
        clock.schedule(0.0, seen.append, "late")

    clock.schedule(5.0, again)
    clock.run()
    assert seen == ["late"]
    assert clock.now == 5.0


def test_what_is_due_after_the_end_is_left() -> None:
    clock = Clock()
    seen: list[int] = []
    clock.schedule(1.0, seen.append, 1)
    clock.schedule(3.0, seen.append, 3)
    clock.run(until=2.0)
    assert seen == [1]
    clock.run()
    assert seen == [1, 3]
