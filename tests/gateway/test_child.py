"""The parent's view of a real child process, whose behaviour the tests script."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.test_channel import until
from tidegate.gateway import child as child_module
from tidegate.gateway.child import Child, ChildFailedError
from tidegate.gateway.messages import CallBack, DrainReplica, Observe, Start
from tidegate.lens.row import Row
from tidegate.policy.reading import Reading


class Ear:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_records(self, rows: list[Row], lost: int) -> None:
        self.heard.append(f"records {[row.request_id for row in rows]} {lost}")

    def on_learned(self, state: dict[str, Any]) -> None:
        self.heard.append(f"learned {state}")

    def on_poll_soon(self, replica: str) -> None:
        self.heard.append(f"poll {replica}")

    def on_call_back(self, callback: CallBack) -> None:
        self.heard.append(f"call back {callback.url}")

    def on_log(self, level: str, text: str) -> None:
        self.heard.append(f"{level} {text}")


def command(behaviour: str) -> tuple[str, ...]:
    return (sys.executable, str(Path(__file__).with_name("scripted_child.py")), behaviour)


def with_child(behaviour: str, body: Callable[[Child, Ear], Awaitable[None]]) -> None:
    async def run() -> None:
        ear = Ear()
        child = await Child.spawn(Start({"port": 0}), ear, command(behaviour))
        try:
            await body(child, ear)
        finally:
            await child.stop()

    asyncio.run(run())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_child_gets_its_settings_answers_questions_and_stops_when_told() -> None:
    async def body(child: Child, ear: Ear) -> None:
        assert (child.ready.host, child.ready.port) == ("127.0.0.1", 8000)
        assert child.send(Observe("chat-0", Reading(at=1.0, ready=False)))
        assert child.send(DrainReplica("chat-0", True))
        view = await child.view()
        assert view is not None
        assert view["seen"] == ["start ['port']", "observe chat-0 False", "drain chat-0 True"]
        snapshot = await child.snapshot()
        assert snapshot is not None
        assert [each.upstream for each in snapshot.series] == ["chat"]
        assert (await child.apply({})).changes == ["swapped"]
        assert (await child.apply({"bad": 1})).problem == "no"
        assert await child.drain(1.0) == 0
        await child.stop()
        assert await child.ended() == 0
        assert not is_alive(child.ready.pid)
        assert await child.view() is None
        assert not child.is_writable

    with_child("plain", body)


def test_what_a_child_says_unasked_reaches_the_listener() -> None:
    async def body(child: Child, ear: Ear) -> None:
        await until(lambda: len(ear.heard) == 4)
        assert ear.heard == ["records ['req-1'] 0", "poll chat-0", "warning slow", "call back http://127.0.0.1:9/"]

    with_child("chatty", body)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("fail", "port 8000 is taken by pid 7; choose another with --port"), ("die", "ended before it listened")],
)
def test_a_child_that_cannot_start_says_why(behaviour: str, reason: str) -> None:
    with pytest.raises(ChildFailedError, match=reason):
        asyncio.run(Child.spawn(Start({}), Ear(), command(behaviour)))


def test_a_child_that_says_nothing_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "START_WITHIN_S", 0.01)
    with pytest.raises(ChildFailedError, match="did not answer within"):
        asyncio.run(Child.spawn(Start({}), Ear(), command("mute")))


def test_a_question_to_a_child_that_crashes_has_no_answer() -> None:
    async def body(child: Child, ear: Ear) -> None:
        assert await child.view() is None
        assert await child.ended() == 3
        assert await child.snapshot() is None
        assert (await child.apply({})).problem == "the data process does not answer"
        assert await child.drain(1.0) is None

    with_child("crash", body)


def test_a_child_that_does_not_listen_to_stop_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "STOP_WITHIN_S", 0.1)

    async def body(child: Child, ear: Ear) -> None:
        await child.stop()
        assert await child.ended() < 0
        assert not is_alive(child.ready.pid)

    with_child("deaf", body)


def test_kill_ends_a_child_without_another_word() -> None:
    async def body(child: Child, ear: Ear) -> None:
        child.kill()
        assert await child.ended() == -9

    with_child("plain", body)
