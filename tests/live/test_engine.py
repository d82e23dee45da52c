"""The embedded engine alone: what the adapter and the policies rely on, seen on the real thing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.live.running import CHAT, Engine, Exchange, call, engine, long_text, said, until
from tidegate.engines.engine import Engine as Adapter
from tidegate.engines.llamacpp.options import Options
from tidegate.engines.recognition import recognise
from tidegate.fleet.supervisor import Supervisor

pytestmark = pytest.mark.live


def adapter(engine: Engine) -> Adapter:
    return asyncio.run(recognise(engine.options.address))


def test_it_is_recognised_and_holds_what_its_options_said(engine: Engine) -> None:
    found = adapter(engine)
    assert found.kind == "llamacpp"
    assert asyncio.run(found.capacity()) == engine.options.capacity
    assert asyncio.run(found.models()) == (engine.options.alias,)


def test_it_starts_within_seconds(engine: Engine) -> None:
    assert engine.ready_s < 20


def test_nobody_without_its_key_gets_an_answer(engine: Engine) -> None:
    assert call(engine.url, CHAT, said("Hi", max_tokens=1)).status == 401
    assert call(engine.url, "/slots").status == 401


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, said("How many tokens are these?", max_tokens=1)),
        (CHAT, {"messages": [{"role": "system", "content": "Be brief."}, *said("Ünïcödé 漢字 🦆")["messages"]]}),  # type: ignore[misc]  # the value is a list
        ("/v1/completions", {"prompt": "One two three", "max_tokens": 1}),
        ("/v1/completions", {"prompt": "<|im_start|>user\nspecial<|im_end|>", "max_tokens": 1}),
    ],
)
def test_its_counts_are_those_of_its_answers(engine: Engine, path: str, body: dict[str, object]) -> None:
    counted = asyncio.run(adapter(engine).count_tokens(path, json.dumps(body).encode()))
    usage = call(engine.url, path, {**body, "max_tokens": 1}, engine.key).json["usage"]
    assert counted == (usage["prompt_tokens"],)


def test_counting_costs_no_sequence(engine: Engine) -> None:
    before = engine.figure("prompt_tokens_total")
    body = json.dumps(said(long_text(3000, "count"))).encode()
    counted = asyncio.run(adapter(engine).count_tokens(CHAT, body))
    assert counted is not None
    assert counted[0] > engine.options.context_tokens
    assert engine.figure("prompt_tokens_total") == before


def test_a_reading_shows_what_runs_and_what_waits(engine: Engine) -> None:
    found = adapter(engine)
    bodies = [said(f"Tell story {n}.", max_tokens=900, stream=True, ignore_eos=True) for n in range(6)]
    six = [Exchange(engine.url, body, engine.key) for body in bodies]
    until(lambda: engine.running() == 4 and engine.figure("requests_deferred") == 2, 10)
    reading = asyncio.run(found.read(1.0))
    for exchange in six:
        exchange.leave()
    assert (reading.ready, reading.running, reading.waiting) == (True, 4, 2)
    assert reading.kv_used_tokens == 4 * engine.options.context_tokens
    until(lambda: engine.running() == 0, 10, every_s=1.3)


def test_a_stream_that_is_left_while_decoding_frees_its_slot_at_once(engine: Engine) -> None:
    exchange = Exchange(engine.url, said("Count to a thousand.", max_tokens=1000, stream=True), engine.key)
    exchange.read_events(5)
    exchange.leave()
    assert until(lambda: engine.running() == 0, 3) < 3


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_in_a_prefill_is_noticed_when_readings_keep_their_distance(
    engine: Engine, stream: bool
) -> None:
    found = adapter(engine)
    body = said(long_text(450, f"leave {stream}"), max_tokens=200, stream=stream, ignore_eos=True)
    exchange = Exchange(engine.url, body, engine.key)
    time.sleep(1.0)
    assert engine.running() == 1
    left_at = exchange.leave()
    until(lambda: asyncio.run(found.read(0.0)).running == 0, 10, every_s=found.look_every_s)
    assert time.monotonic() - left_at < 6


def test_streams_go_on_beside_a_long_prefill(engine: Engine) -> None:
    stream = Exchange(engine.url, said("Write a poem.", max_tokens=60, stream=True, ignore_eos=True), engine.key)
    stream.read_events(5)
    beside = Exchange(engine.url, said(long_text(150, "beside"), max_tokens=1), engine.key)
    gaps = []
    for event in range(6, 20):
        before = time.monotonic()
        stream.read_events(event)
        gaps.append(time.monotonic() - before)
    stream.leave()
    beside.read_all()
    # The whole prefill takes some ten seconds; a gap is one batch of it.
    assert max(gaps) < 5


def test_an_over_long_prompt_is_refused_by_the_engine_too(engine: Engine) -> None:
    refused = call(engine.url, CHAT, said(long_text(3000, "long"), stream=True), engine.key)
    assert (refused.status, refused.json["error"]["type"]) == (400, "exceed_context_size_error")


def test_it_ends_with_its_parent() -> None:
    with engine() as started:
        assert started.process.stdin is not None
        stream = Exchange(started.url, said("Go on for ever.", max_tokens=1500, stream=True), started.key)
        stream.read_events(2)
        started.process.stdin.close()
        assert started.process.wait(5) == 0
        stream.leave()


def problem_of(options: Options) -> str:
    """What an engine with these options says before it gives up."""
    launch = options.launch("second")
    env = {**os.environ, **launch.env}
    with subprocess.Popen(launch.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as second:
        assert second.stdin is not None
        assert second.stdout is not None
        second.stdin.write(launch.first_line)
        second.stdin.flush()
        said = json.loads(second.stdout.readline())
        assert second.wait(30) == 1
        return str(said["problem"])


def test_a_taken_port_is_named(engine: Engine) -> None:
    assert f"on port {engine.options.port}" in problem_of(engine.options)


def test_a_broken_model_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and then nothing that makes sense")
    assert f"does not start with {broken}" in problem_of(Options(model=str(broken)))


class Watch:
    """A watcher that remembers what it was told."""

    def __init__(self) -> None:
        self.ready: asyncio.Queue[str] = asyncio.Queue()
        self.down: list[str] = []

    def on_ready(self, url: str) -> None:
        self.ready.put_nowait(url)

    def on_down(self, reason: str, again_in_s: float | None) -> None:
        self.down.append(reason)

    def on_line(self, text: str) -> None:
        """Nothing is done with it."""


def test_the_supervisor_brings_a_killed_engine_back_to_the_same_place(engine: Engine) -> None:
    async def live() -> None:
        watch = Watch()
        options = Options(model=engine.options.model)
        supervisor = Supervisor(options.launch("engine"), watch)
        task = asyncio.create_task(supervisor.run())
        try:
            first = await watch.ready.get()
            assert supervisor.pid is not None
            os.kill(supervisor.pid, signal.SIGKILL)
            assert await watch.ready.get() == first == options.address.url
            assert watch.down == ["killed by SIGKILL"]
            assert await (await recognise(options.address)).models() == (options.alias,)
        finally:
            await supervisor.stop()
            await task

    asyncio.run(live())
