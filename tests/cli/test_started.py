"""An engine of our own under its supervisor: what is told of it, its loss and return, its end."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import sys
from pathlib import Path

import pytest

from tidegate.cli import embedded_recipe as recipe_module
from tidegate.cli.embedded_recipe import embedded_recipe
from tidegate.cli.started import Started
from tidegate.config.started_engines import Embedded
from tidegate.engines.launch import Launch
from tidegate.engines.llamacpp.options import Options
from tidegate.errors import EngineError

SCRIPT = str(Path(__file__).with_name("scripted_engine.py"))


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The script runs in the engine's place, told the same first line."""
    launch = Options.launch
    model = tmp_path / "tiny.gguf"
    model.write_bytes(b"GGUF")

    def scripted_launch(options: Options, name: str) -> Launch:
        return dataclasses.replace(launch(options, name), command=(sys.executable, SCRIPT))

    monkeypatch.setattr(Options, "launch", scripted_launch)
    monkeypatch.setattr(recipe_module, "model_file", lambda path: model)


class Heard:
    """What was said, and every change of state."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def say(self, level: str, text: str) -> None:
        self.lines.append(f"{level} {text}")

    def on_state(self, name: str, problem: str) -> None:
        self.states.put_nowait((name, problem))

    async def state(self) -> tuple[str, str]:
        async with asyncio.timeout(30):
            return await self.states.get()

    def started(self, alias: str = "smollm2", section: Embedded | None = None) -> Started:
        name = f"{alias}-embedded"
        return Started(name, embedded_recipe(alias, name, section or Embedded()), self.say, self.on_state)


def test_a_started_engine_tells_its_pool_and_where_it_is_reached() -> None:
    async def run() -> None:
        heard = Heard()
        section = Embedded(sequences=2, context_tokens=1024, threads=3)
        started = heard.started(section=section)
        line = embedded_recipe("m", "m-embedded", section).loading_line
        assert line == "Loading model weights to CPU... (tiny.gguf, 3 threads)"
        await started.start()
        assert await heard.state() == ("smollm2-embedded", "")
        assert (started.resident_bytes or 0) > 0
        assert (started.told.capacity.slots, started.told.capacity.sequences) == (2, 2)
        endpoint = started.told.endpoint
        assert endpoint is not None
        assert f"http://127.0.0.1:{endpoint.port}" == started.engine.address.url
        assert endpoint.api_key == started.engine.address.api_key
        reading = await started.engine.read(asyncio.get_running_loop().time())
        assert (reading.ready, reading.running) == (True, 0)
        await started.close()
        assert started.resident_bytes is None

    asyncio.run(run())


def test_an_engine_that_is_killed_is_reported_at_once_and_comes_back_to_the_same_place() -> None:
    async def run() -> None:
        heard = Heard()
        started = heard.started()
        await started.start()
        assert await heard.state() == ("smollm2-embedded", "")
        pid = started.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert await heard.state() == ("smollm2-embedded", "the engine: killed by SIGKILL")
        assert await heard.state() == ("smollm2-embedded", "")
        assert started.pid != pid
        reading = await started.engine.read(asyncio.get_running_loop().time())
        assert reading.ready
        assert any(line.startswith("error smollm2-embedded") and "started again in" in line for line in heard.lines)
        await started.close()

    asyncio.run(run())


def test_kill_ends_it_and_starts_no_other() -> None:
    async def run() -> None:
        heard = Heard()
        started = heard.started()
        await started.start()
        pid = started.pid
        assert pid is not None
        started.kill()
        await started.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        started.kill()
        assert started.pid is None

    asyncio.run(run())


def test_an_engine_that_cannot_run_says_why() -> None:
    async def run() -> None:
        heard = Heard()
        started = heard.started("broken")
        with pytest.raises(EngineError, match="the model is broken"):
            await started.start()
        assert await heard.state() == ("broken-embedded", "the engine: the model is broken")
        assert any("it stays down" in line for line in heard.lines)
        await started.close()

    asyncio.run(run())
