"""On a virtual clock, so that looks minutes apart take no time."""

from __future__ import annotations

import asyncio

from tidegate.errors import EngineError
from tidegate.load.engine_look import Figures
from tidegate.load.engine_watch import EngineWatch
from tidegate.load.target import Target
from tidegate.testing.virtual_loop import VirtualLoop


class Scripted:
    """Tells the next of ``script`` at each look; text is a failure."""

    title = "engine"
    every_s = 1.0

    def __init__(self, *script: Figures | str) -> None:
        self.script = [*script]
        self.looks = 0

    async def read(self) -> Figures:
        self.looks += 1
        found = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(found, str):
            raise EngineError(found)
        return found


def watched(look: Scripted, seconds: float) -> EngineWatch:
    async def run() -> EngineWatch:
        async with EngineWatch([], 5.0, [look]) as watch:
            await asyncio.sleep(seconds)
        return watch

    loop = VirtualLoop()
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def test_each_figure_becomes_a_line_over_the_time_of_the_run() -> None:
    look = Scripted({("requests", "running"): 1.0}, {("requests", "running"): 2.0, ("tokens", "KV"): 9.0})
    found = watched(look, 11.0).readings()
    assert found["readings"] == [
        {"title": "engine", "unit": "requests", "lines": {"running": [(0.0, 1.0), (5.0, 2.0), (10.0, 2.0)]}},
        {"title": "engine", "unit": "tokens", "lines": {"KV": [(5.0, 9.0), (10.0, 9.0)]}},
    ]
    assert found["notes"] == []


def test_what_never_tells_is_left_alone_after_three_looks_and_noted() -> None:
    look = Scripted("no GPU here")
    found = watched(look, 100.0).readings()
    assert look.looks == 3
    assert (found["readings"], found["notes"]) == ([], ["engine: no GPU here"])


def test_an_engine_that_is_gone_for_a_while_is_asked_again() -> None:
    told: Figures = {("requests", "running"): 1.0}
    look = Scripted(told, "gone", "gone", "gone", "gone", told)
    found = watched(look, 31.0).readings()
    assert look.looks == 7
    assert found["notes"] == ["engine: 4 of 7 looks told nothing, the last time: gone"]
    assert [at for at, _ in found["readings"][0]["lines"]["running"]] == [0.0, 25.0, 30.0]


def test_a_run_that_ends_at_once_leaves_nothing_running() -> None:
    async def run() -> EngineWatch:
        async with EngineWatch([Target(name="a", url="http://127.0.0.1:9/v1", model="m")]) as watch:
            await asyncio.sleep(0)
        return watch

    assert asyncio.run(run()).readings()["readings"] == []
