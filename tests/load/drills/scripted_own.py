"""A deployment of a drill's own without processes: orders are noted, requests are answered by a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from tests.load.drills.made_findings import findings
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.catalogue import OWN_FAULTS
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.own_gateway import OwnGateway
from tidegate.load.drills.scene import Scene
from tidegate.load.sample import Sample
from tidegate.load.target import Target
from tidegate.testing.faults import Fault
from tidegate.wire.fetch import Reply

AT_ONCE = Pace(baseline_s=0.0, fault_s=0.0, after_s=0.0, rate_per_s=100.0, patience_s=5.0)
IDLE: Mapping[str, Any] = {"ready": True, "in_flight": 0, "aborting": 0}


def sample(ask: Ask | None = None, outcome: ClientOutcome = ClientOutcome.OK, **changes: Any) -> Sample:
    fields = {"phase": "p", "target": "own", "index": 0, "label": "steady", "due_at": 0.0, "sent_at": 0.0}
    fields |= {"ended_at": 1.0, "outcome": outcome}
    if ask is not None:
        fields |= {"index": ask.index, "label": ask.label, "is_stream": ask.is_stream}
    return Sample(**{**fields, **changes})


@dataclass
class ScriptedGateway:
    """What a drill asks of ``OwnGateway``."""

    url: str = "http://127.0.0.1:9"
    admin_url: str = "http://127.0.0.1:9"
    pid: int | None = None
    lives: int = 1
    log: str = ""
    orders: list[tuple[str, str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    """By path."""
    refused: frozenset[str] = frozenset()
    """Methods that are answered 404."""
    shown: dict[str, Any] = field(default_factory=lambda: {"replicas": {}, "permit_leaks": 0})
    requests: list[dict[str, Any]] = field(default_factory=list)

    def data_pid(self) -> int | None:
        return self.pid

    def children(self) -> list[int]:
        return []

    async def view(self) -> dict[str, Any] | None:
        return self.shown

    async def rows(self) -> list[dict[str, Any]]:
        return self.requests

    async def admin(self, path: str, method: str = "GET", body: object = None) -> Reply:
        self.orders.append((method, path, body))
        if method in self.refused:
            return Reply(404, {}, b"no such thing")
        told = self.shown if path == "/admin/view" else self.answers.get(path, {})
        return Reply(200, {}, msgspec.json.encode(told))


class ScriptedOwn(OwnDeployment):
    """``faults`` made are noted, not done."""

    def __init__(self, folder: Path, replicas: int = 2) -> None:
        super().__init__(folder, replicas, OWN_FAULTS, lambda _line: None)
        self.scripted = ScriptedGateway()
        self.scripted.shown["replicas"] = {name: dict(IDLE) for name in self.replicas}
        self.done: list[str] = []

    @property
    def gateway(self) -> OwnGateway:
        return cast(OwnGateway, self.scripted)

    @property
    def target(self) -> Target:
        return Target(name="own", url=f"{self.scripted.url}/v1", model="m")

    async def break_(self, fault: str, replica: str | None) -> None:
        self.done.append(f"break {fault} {replica}")

    async def restore(self, fault: str, replica: str | None) -> None:
        self.done.append(f"restore {fault} {replica}")

    async def reload(self, names: Sequence[str] | None = None) -> None:
        self.done.append(f"reload {names}")
        self.scripted.shown["replicas"] = {name: dict(IDLE) for name in names or ()}


class ScriptedStandIn:
    """What a drill does with a ``StandIn``."""

    def __init__(self, name: str, **options: object) -> None:
        self.name = name
        self.options = options
        self.url = f"http://{name}"
        self.done: list[str] = []

    async def start(self) -> None:
        self.done.append("start")

    async def close(self) -> None:
        self.done.append("close")

    async def fail(self, fault: Fault) -> None:
        self.done.append(fault.value)


class ScriptedSender:
    """What a drill does with a ``Sender``; ``answer`` is put in by the test."""

    answer: Callable[[Target, Ask], Sample]

    def __init__(self, target: Target, _zero: float, **_options: object) -> None:
        self.target = target

    async def ask(self, ask: Ask, _phase: str = "") -> Sample:
        return type(self).answer(self.target, ask)

    async def open_loop(
        self, asks: Iterator[Ask], _began: float, duration_s: float, sink: Callable[[Sample], None], _phase: str = ""
    ) -> None:
        for ask in asks:
            if ask.due_s >= duration_s:
                return
            sink(type(self).answer(self.target, ask))

    async def close(self) -> None:
        return


def sender(answer: Callable[[Target, Ask], Sample]) -> type[ScriptedSender]:
    """A class of its own for each test."""
    return type("Sender", (ScriptedSender,), {"answer": staticmethod(answer)})


def scene_of(own: OwnDeployment, pace: Pace = AT_ONCE) -> Scene:
    return Scene(own, pace, findings(), time.monotonic())
