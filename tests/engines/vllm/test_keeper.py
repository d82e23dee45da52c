"""The process between the supervisor and vLLM, with a small real server in vLLM's place."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegate.engines.loopback import free_port
from tidegate.engines.vllm.order import Order
from tidegate.errors import EngineError
from tidegate.fleet.engine_process import CannotRunError, EngineProcess

SCRIPT = str(Path(__file__).with_name("scripted_server.py"))


def order(behaviour: str = "sound", *more: str, command: str = sys.executable) -> Order:
    port = free_port()
    flags = ("--model", f"/models/{behaviour}", "--served-model-name", "m", "--port", str(port), *more)
    return Order(command=(command, SCRIPT, *flags), env={"VLLM_API_KEY": "sesame"}, url=f"http://127.0.0.1:{port}")


class Life:
    """One process and what it wrote."""

    def __init__(self, given: Order) -> None:
        self.order = given
        self.lines: list[str] = []

    async def __aenter__(self) -> EngineProcess:
        self.process = await EngineProcess.spawn(self.order.launch("m-vllm"), self.lines.append)
        return self.process

    async def __aexit__(self, *error: object) -> None:
        await self.process.stop(10.0)
        await until(lambda: not any(map(is_alive, self.workers())))

    def workers(self) -> list[int]:
        return [int(number) for line in self.lines for number in re.findall(r"^worker (\d+)", line)]


async def until(condition: Callable[[], bool]) -> None:
    """What another process does tells nobody here when it is done."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - there is no event of ours to wait for
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_it_is_ready_when_health_says_so_and_ends_with_all_it_started() -> None:
    async def run() -> None:
        life = Life(order())
        async with life as process:
            async with asyncio.timeout(30):
                assert await process.listening() == life.order.url
            assert life.lines[0] == "APIServer starts sesa"
            assert is_alive(life.workers()[0])
            assert await process.stop(10.0) == 0
        assert process.reason(0) == "ended with status 0"

    asyncio.run(run())


def test_an_end_by_itself_is_a_failure_whatever_the_status_and_leaves_no_worker() -> None:
    async def run() -> None:
        async with Life(order("loses-its-engine")) as process, asyncio.timeout(30):
            await process.listening()
            status = await process.ended()
            assert status == 1
            assert process.reason(status) == "vLLM ended with status 0 while it served"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (order("refused"), CannotRunError, "Value error, the model is not for this"),
        (order("sound", "--no-such-flag"), CannotRunError, "unrecognized arguments: --no-such-flag"),
        (order(command="/nowhere/python"), CannotRunError, "/nowhere/python cannot be started"),
        (order("unlucky"), EngineError, "ended with status 1 during its start: ValueError: no memory just now"),
    ],
)
def test_a_start_that_fails_says_why_and_whether_it_would_again(
    given: Order, error: type[EngineError], words: str
) -> None:
    async def run() -> None:
        async with Life(given) as process, asyncio.timeout(30):
            with pytest.raises(EngineError, match=re.escape(words)) as caught:
                await process.listening()
            assert type(caught.value) is error

    asyncio.run(run())


def test_it_ends_with_the_supervisor_that_is_gone() -> None:
    async def run() -> None:
        life = Life(order())
        async with life as process, asyncio.timeout(30):
            await process.listening()
            (worker,) = life.workers()
            assert process._lifeline is not None
            os.close(process._lifeline)
            process._lifeline = None
            await process.ended()
            await until(lambda: not is_alive(worker))

    asyncio.run(run())


def test_told_to_end_during_its_start_it_is_gone_at_once() -> None:
    async def run() -> None:
        life = Life(order("sound"))
        async with life as process, asyncio.timeout(30):
            await until(lambda: bool(life.lines))
            assert await process.stop(10.0) == 0

    asyncio.run(run())
