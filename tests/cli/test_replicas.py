"""Engines that run already are recognised, named, and asked again when they did not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.scripted_upstream import ScriptedUpstream
from tidegate.cli import replicas as replicas_module
from tidegate.cli.replicas import Replicas, model_name
from tidegate.cli.serve import named_upstreams
from tidegate.config import Settings, load
from tidegate.engines.address import Address
from tidegate.errors import EngineError
from tidegate.gateway.ports import open_port


class Log:
    """What was said, and how often something changed."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.changed = asyncio.Event()

    def say(self, level: str, text: str) -> None:
        self.lines.append((level, text))

    def replicas(self) -> Replicas:
        return Replicas({}, self.say, self.changed.set, lambda name, problem: None)


def configuration(folder: Path, *urls: str) -> Settings:
    file = folder / "tidegate.yaml"
    listed = "".join(f"\n      - {url}" for url in urls)
    file.write_text(f"upstreams:\n  chat:\n    replicas:{listed}\n")
    return load(file, {}, {})


def free_url() -> str:
    with open_port("127.0.0.1", 0, "--port") as sock:
        return f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_an_engine_tells_its_kind_and_the_model_to_ask_it_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedUpstream() as upstream:
            log = Log()
            replicas = log.replicas()
            await replicas.recognise(configuration(tmp_path, upstream.url))
            assert log.lines == [("info", f"chat-0: openai at {upstream.url}, model scripted")]
            assert replicas.told["chat-0"].model == "scripted"
            assert list(replicas.sources) == ["chat-0"]

    asyncio.run(run())


def test_a_reload_asks_only_engines_that_are_new_and_forgets_those_that_went(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedUpstream() as first, ScriptedUpstream() as second:
            log = Log()
            replicas = log.replicas()
            await replicas.recognise(configuration(tmp_path, first.url))
            kept = replicas.sources["chat-0"]
            await replicas.recognise(configuration(tmp_path, first.url, second.url))
            assert replicas.sources["chat-0"] is kept
            assert [text.split(":")[0] for _, text in log.lines] == ["chat-0", "chat-1"]
            await replicas.recognise(configuration(tmp_path, second.url))
            assert list(replicas.told) == ["chat-0"]
            assert replicas.sources["chat-0"].address.url == second.url

    asyncio.run(run())


def test_an_engine_that_did_not_answer_is_asked_again_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas_module, "ASK_AGAIN_EVERY_S", 0.01)

    async def run() -> None:
        url, log = free_url(), Log()
        replicas = log.replicas()
        await replicas.recognise(configuration(tmp_path, url))
        assert replicas.told == {}
        [(level, text)] = log.lines
        assert level == "warning"
        assert "it gets no requests until it answers" in text
        watching = asyncio.create_task(replicas.watch())
        upstream = ScriptedUpstream()
        await upstream.listen(int(url.rpartition(":")[2]))
        async with asyncio.timeout(10):
            await log.changed.wait()
        assert replicas.told["chat-0"].model == "scripted"
        watching.cancel()
        await upstream.close()

    asyncio.run(run())


def test_a_bare_url_is_named_after_its_model_and_other_values_stay_as_they_are() -> None:
    async def run() -> None:
        async with ScriptedUpstream() as upstream:
            named = await named_upstreams([upstream.url, f"a/b={upstream.url}", "embedded", "nonsense"])
            assert named == [f"scripted={upstream.url}", f"a/b={upstream.url}", "smollm2=embedded", "nonsense"]

    asyncio.run(run())


@pytest.mark.parametrize("models", [(), ("a", "b")])
def test_an_engine_with_no_or_several_models_must_be_named_by_the_user(models: tuple[str, ...]) -> None:
    async def run() -> None:
        async with ScriptedUpstream() as upstream:
            upstream.models = models
            with pytest.raises(EngineError, match=f"lists {len(models)} models .*--upstream NAME=URL"):
                await model_name(Address(url=upstream.url))

    asyncio.run(run())


def test_an_engine_that_cannot_be_asked_for_its_model_is_said_so() -> None:
    with pytest.raises(EngineError, match="start the engine first, or name the model"):
        asyncio.run(model_name(Address(url=free_url())))
