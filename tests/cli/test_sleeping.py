from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tidegate.cli.sleeping import Sleeping
from tidegate.engines.address import Address
from tidegate.engines.vllm.readings import VllmServer
from tidegate.errors import EngineError


class Replica:
    """One replica whose load and whose engine's answers the test sets."""

    def __init__(self, in_flight: int = 0, problem: Exception | None = None) -> None:
        self.in_flight = in_flight
        self.problem = problem
        self.done: list[str] = []

    async def drain(self, replica: str, on: bool) -> bool:
        self.done.append(f"drain {on}")
        return True

    async def view(self) -> dict[str, Any] | None:
        self.in_flight = max(0, self.in_flight - 1)
        return {"replicas": {"r": {"in_flight": self.in_flight, "aborting": 0}}}

    def order(self, on: bool, drain_s: float = 5.0) -> str:
        engine = Engine(self)
        return asyncio.run(Sleeping(self.drain, self.view, drain_s).order("r", engine, on))


class Engine(VllmServer):
    def __init__(self, replica: Replica) -> None:
        super().__init__(Address(url="http://127.0.0.1:9"))
        self.replica = replica

    async def _order(self, path: str) -> None:
        self.replica.done.append(path)
        if self.replica.problem is not None:
            raise self.replica.problem


def test_it_sleeps_once_its_requests_are_over() -> None:
    replica = Replica(in_flight=2)
    assert replica.order(True) == ""
    assert replica.done == ["drain True", "/sleep?level=1"]


def test_one_that_stays_busy_stays_awake_and_in_service() -> None:
    replica = Replica(in_flight=10**9)
    assert replica.order(True, drain_s=0.01) == "r still ran requests after 0.01 s and stays awake"
    assert replica.done == ["drain True", "drain False"]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(("problem", "words"), [(EngineError("404"), "r: 404"), (TimeoutError(), "r: TimeoutError")])
def test_an_engine_that_does_not_do_it_goes_on_serving(on: bool, problem: Exception, words: str) -> None:
    replica = Replica(problem=problem)
    assert replica.order(on) == words
    assert replica.done[-1] == "drain False"


def test_a_woken_one_takes_requests_again() -> None:
    replica = Replica()
    assert replica.order(False) == ""
    assert replica.done == ["/wake_up", "drain False"]
