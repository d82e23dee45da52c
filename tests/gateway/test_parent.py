"""The parent keeps a data process running, and tells the next one what the last one knew."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.gateway.test_channel import until
from tests.gateway.test_child import command, is_alive
from tidegate.gateway import parent as parent_module
from tidegate.gateway.child import ChildFailedError
from tidegate.gateway.parent import Parent
from tidegate.gateway.settings import Endpoint, Settings
from tidegate.lens.ring import Ring
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Reading, ReplicaConfig

SETTINGS = Settings(
    path=PathConfig(replicas=(ReplicaConfig(name="chat-0", upstream="chat"),)),
    endpoints=(Endpoint(name="chat-0", host="127.0.0.1", port=9),),
    port=0,
)


class Stage:
    """A parent with everything it says."""

    def __init__(self, behaviour: str, settings: Settings = SETTINGS) -> None:
        self.said: list[tuple[str, str]] = []
        self.wanted: list[str] = []
        self.parent = Parent(settings, Ring(10), self.say, self.wanted.append, command(behaviour))

    def say(self, level: str, text: str) -> None:
        self.said.append((level, text))


def with_parent(behaviour: str, body: Callable[[Stage], Awaitable[None]], settings: Settings = SETTINGS) -> None:
    async def run() -> None:
        stage = Stage(behaviour, settings)
        await stage.parent.start()
        watching = asyncio.create_task(stage.parent.watch())
        keeping = asyncio.create_task(stage.parent.keep())
        try:
            await body(stage)
        finally:
            keeping.cancel()
            await stage.parent.stop(0.5)
            await watching

    asyncio.run(run())


async def seen_by_child(stage: Stage) -> list[str]:
    view = await stage.parent.view()
    assert view is not None
    return [str(each) for each in view["seen"]]


def test_the_parent_collects_records_logs_them_on_request_and_passes_on_wishes() -> None:
    async def body(stage: Stage) -> None:
        await until(lambda: len(stage.said) == 2)
        assert [row.request_id for row in stage.parent.ring] == ["req-1"]
        assert stage.wanted == ["chat-0"]
        assert ("warning", "slow") in stage.said
        assert any("request id=req-1" in text for _, text in stage.said)

    with_parent("chatty", body, replace(SETTINGS, are_requests_logged=True))


def test_the_parent_sends_callbacks_and_says_which_it_could_not_send() -> None:
    async def body(stage: Stage) -> None:
        await until(lambda: bool(stage.parent.ring))

    said: list[tuple[str, str]] = []

    async def noting(stage: Stage) -> None:
        await body(stage)
        await stage.parent.stop(0.5)
        said.extend(stage.said)

    with_parent("chatty", noting)
    assert ("error", "1 callbacks are dropped, because the service ends") in said


def test_readings_changes_and_drains_go_down() -> None:
    async def body(stage: Stage) -> None:
        parent = stage.parent
        parent.observe("chat-0", Reading(at=1.0))
        assert await parent.drain_replica("chat-0", True)
        assert await parent.drain_replica("chat-0", False)
        assert not await parent.drain_replica("ghost", True)
        assert (await seen_by_child(stage))[1:] == ["observe chat-0 True", "drain chat-0 True", "drain chat-0 False"]
        assert (await parent.apply(replace(SETTINGS, port=1))).changes == ["swapped"]
        assert parent.settings.port == 8000
        assert await parent.snapshot() is not None

    with_parent("plain", body)


def test_a_data_process_that_is_killed_is_replaced_by_one_that_knows_as_much() -> None:
    async def body(stage: Stage) -> None:
        parent = stage.parent
        parent.observe("chat-0", Reading(at=1.0))
        await parent.drain_replica("chat-0", True)
        await seen_by_child(stage)
        first = parent.is_running
        view = await parent.view()
        assert view is not None
        os.kill(view["pid"], signal.SIGKILL)
        await until(lambda: parent.facts.data_process_restarts == 1)
        assert first
        assert (await seen_by_child(stage))[1:] == ["observe chat-0 True", "drain chat-0 True"]
        assert any(level == "error" and "ended with status -9" in text for level, text in stage.said)

    with_parent("plain", body)


def test_what_the_policies_had_learned_goes_to_the_next_data_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_module, "KEEP_EVERY_S", 0.01)

    async def body(stage: Stage) -> None:
        parent = stage.parent
        view = await parent.view()
        assert view is not None
        await until(lambda: parent.learned is not None)
        os.kill(view["pid"], signal.SIGKILL)
        await until(lambda: parent.facts.data_process_restarts == 1)
        assert (await seen_by_child(stage))[0] == f"learned {{'by': {view['pid']}}}"

    with_parent("plain", body)


def test_a_data_process_that_cannot_start_gives_its_reason() -> None:
    with pytest.raises(ChildFailedError, match="port 8000 is taken"):
        asyncio.run(start_only("fail"))


async def start_only(behaviour: str) -> None:
    await Stage(behaviour).parent.start()


def test_stop_drains_and_leaves_nothing_running() -> None:
    async def run() -> None:
        stage = Stage("plain")
        ready = await stage.parent.start()
        watching = asyncio.create_task(stage.parent.watch())
        assert await stage.parent.stop(1.0) == 0
        await watching
        assert not is_alive(ready.pid)
        assert stage.parent.facts.data_process_restarts == 0

    asyncio.run(run())


def test_kill_ends_it_at_once_and_starts_no_other() -> None:
    async def run() -> None:
        stage = Stage("plain")
        ready = await stage.parent.start()
        watching = asyncio.create_task(stage.parent.watch())
        stage.parent.kill()
        await watching
        assert not is_alive(ready.pid)

    asyncio.run(run())
