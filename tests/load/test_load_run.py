from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.load.made_samples import played, sample
from tests.load.test_turn import EverySecond
from tidegate.load.load_run import LoadRun, measured_peak
from tidegate.load.phase import Kind, Phase
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.played import Played
from tidegate.load.progress import Progress
from tidegate.load.target import Target

A = Target(name="a", url="http://a/v1", model="m")
B = Target(name="b", url="http://b/v1", model="m")


class Player:
    """Sends nothing: each answer of each phase takes a second, and so many came per second as the target is told."""

    def __init__(self, answers_per_s: dict[str, float]) -> None:
        self.answers_per_s = answers_per_s
        self.turns: list[tuple[str, str, float]] = []
        self.first_labels: list[str] = []
        self.run: LoadRun | None = None
        self.stops_after = 1_000

    async def play(self, phase: Phase, target: Target, on_progress: Callable[[Progress], None]) -> Played:
        self.turns.append((phase.name, target.name, phase.duration_s))
        self.first_labels.append(next(phase.source.asks(1)).label)
        on_progress(Progress(phase=phase.name, target=target.name, elapsed_s=1.0, duration_s=phase.duration_s))
        count = round(self.answers_per_s[target.name] * phase.duration_s)
        samples = [sample(k / count * phase.duration_s / 2, target=target.name, phase=phase.name) for k in range(count)]
        if len(self.turns) >= self.stops_after and self.run is not None:
            self.run.is_stopped = True
        return played(samples, sending_s=phase.duration_s, phase=phase.name, target=target.name)


def step(name: str, duration_s: float = 60.0) -> Phase:
    return Phase(name=name, kind=Kind.STEP, source=EverySecond(), duration_s=duration_s, users=3)


def run_of(plan: Plan, player: Player, *targets: Target) -> tuple[LoadRun, list[PhaseFigures], list[Progress]]:
    told: list[PhaseFigures] = []
    progress: list[Progress] = []
    run = LoadRun(plan, targets, player, progress.append, told.append, turn_s=20.0)
    player.run = run
    asyncio.run(run.play_all())
    return run, told, progress


def test_one_target_is_played_phase_by_phase_in_one_turn_each() -> None:
    player = Player({"a": 2.0})
    run, told, progress = run_of(Plan(name="x", seed=1, phases=(step("one"), step("two"))), player, A)
    assert player.turns == [("one", "a", 60.0), ("two", "a", 60.0)]
    assert [figures.phase for figures in told] == ["one", "two"] == [each.phase for each in progress]
    assert run.figures == told
    assert player.first_labels == ["", ""], "nobody else meets these prompts, so the plan's own nonces are sent"


def test_several_targets_take_turns_in_an_order_that_changes_with_nonces_of_their_own() -> None:
    player = Player({"a": 2.0, "b": 1.0})
    run, told, _ = run_of(Plan(name="x", seed=1, phases=(step("one", 200.0),)), player, A, B)
    names = [target for _, target, _ in player.turns]
    assert names.count("a") == names.count("b") == 10
    pairs = {tuple(names[turn : turn + 2]) for turn in range(0, 20, 2)}
    assert pairs == {("a", "b"), ("b", "a")}
    assert player.first_labels == names, "each target's nonces carry its name"
    assert {figures.target: figures.all.due for figures in told} == {"a": 400, "b": 200}
    assert len(run.played) == 20


def test_a_plan_goes_on_from_the_peak_of_its_weakest_target() -> None:
    asked: list[float] = []

    def further(peak_per_s: float) -> tuple[Phase, ...]:
        asked.append(peak_per_s)
        return (Phase(name="soak", kind=Kind.SOAK, source=EverySecond(), duration_s=10.0),)

    player = Player({"a": 2.0, "b": 1.0})
    run, told, _ = run_of(Plan(name="x", seed=1, phases=(step("one"),), after_peak=further), player, A, B)
    assert asked == [pytest.approx(1.0)]
    assert [figures.phase for figures in told] == ["one", "one", "soak", "soak"]
    assert [phase.name for phase in run.plan.phases] == ["one", "soak"], "the manifest tells what was sent"
    assert run.plan.notes["measured_peak_per_s"] == "1"


def test_nothing_follows_a_ramp_that_was_not_answered() -> None:
    plan = Plan(name="x", seed=1, phases=(step("one"),), after_peak=lambda _: (step("never"),))
    run, told, _ = run_of(plan, Player({"a": 0.0}), A)
    assert [figures.phase for figures in told] == ["one"]
    assert run.plan.notes["measured_peak_per_s"].startswith("0: no step was answered")


def test_what_makes_further_phases_is_not_asked_without_a_step() -> None:
    only = Phase(name="load", source=EverySecond(), duration_s=10.0)
    plan = Plan(name="x", seed=1, phases=(only,), after_peak=lambda _: (step("never"),))
    run, told, _ = run_of(plan, Player({"a": 1.0}), A)
    assert [figures.phase for figures in told] == ["load"]
    assert measured_peak(run.figures) is None


def test_a_run_that_is_stopped_keeps_what_was_played_and_begins_nothing_more() -> None:
    player = Player({"a": 1.0, "b": 1.0})
    player.stops_after = 1
    plan = Plan(name="x", seed=1, phases=(step("one"), step("two")), after_peak=lambda _: (step("never"),))
    run, told, _ = run_of(plan, player, A, B)
    assert len(player.turns) == 1 == len(run.played)
    assert [figures.phase for figures in told] == ["one"]
