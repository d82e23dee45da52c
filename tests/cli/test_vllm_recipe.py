"""A vLLM of our own from its section to its end, with a small real server in vLLM's place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import run
from tests.cli.served import WITHIN_S, Served, serving
from tests.cli.test_started import Heard
from tests.engines.vllm.scripted_python import checkpoint, scripted_python
from tidegate.cli.settled import settled
from tidegate.cli.started import Started
from tidegate.cli.vllm_recipe import vllm_recipe
from tidegate.config import Settings, load, slot_plans
from tidegate.config.started_engines import Vllm
from tidegate.errors import ConfigError, EngineError
from tidegate.gateway.settings import Endpoint
from tidegate.wire.fetch import fetch

GIB = 2**30


def section(folder: Path, **changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "kind": "vllm",
        "context_tokens": 1024,
        "sequences": 4,
        "kv_blocks": 80,
        "block_tokens": 32,
    }
    if "python" not in changes:
        usual["python"] = scripted_python(folder)
    if "model" not in changes:
        usual["model"] = checkpoint(folder)
    return {key: value for key, value in {**usual, **changes}.items() if value is not None}


def configuration(folder: Path, slots: str = "{}", **changes: Any) -> Path:
    file = folder / "tidegate.yaml"
    file.write_text(f"slots: {slots}\nupstreams: {{m: {{engine: {json.dumps(section(folder, **changes))}}}}}\n")
    return file


def settings(folder: Path, slots: str = "{}", **changes: Any) -> Settings:
    return settled(load(configuration(folder, slots, **changes), {}, {}))


def started(folder: Path, heard: Heard, **changes: Any) -> Started:
    told = settings(folder, **changes)
    (plan,) = slot_plans(told)
    engine = told.upstreams["m"].engine
    assert isinstance(engine, Vllm)
    return Started(plan.replica, vllm_recipe("m", plan.replica, engine, plan), heard.say, heard.on_state)


def test_it_serves_with_the_slots_of_its_pool_and_comes_back_when_it_is_killed(tmp_path: Path) -> None:
    async def live() -> None:
        heard = Heard()
        engine = started(tmp_path, heard)
        await engine.start()
        assert await heard.state() == ("m-vllm", "")
        assert engine.told.capacity.kv_tokens == 80 * 32
        assert isinstance(engine.told.endpoint, Endpoint)
        reading = await engine.engine.read(1.0)
        assert (reading.ready, reading.preemptions, reading.prefix_found_tokens) == (True, 3, 50)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        assert await heard.state() == ("m-vllm", "the engine: killed by SIGKILL")
        assert await heard.state() == ("m-vllm", "")
        assert engine.restarts == 1
        await engine.close()
        assert any("vLLM 0.32.0 serves at" in line for line in heard.lines)

    asyncio.run(live())


def test_the_pool_it_measured_counts_and_not_the_one_that_was_worked_out(tmp_path: Path) -> None:
    async def live() -> None:
        heard = Heard()
        engine = started(tmp_path, heard, kv_blocks=None, block_tokens=None, kv_bytes=GIB)
        assert engine.told.capacity.kv_tokens == GIB // 23_040
        await engine.start()
        assert engine.told.capacity.kv_tokens == 100 * 16
        assert any("its KV pool is 1600 tokens, and not 46603 as worked out" in line for line in heard.lines)
        await engine.close()

    asyncio.run(live())


def test_a_pool_that_it_does_not_tell_is_the_one_that_was_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        heard = Heard()
        engine = started(tmp_path, heard)

        async def silent() -> None:
            raise EngineError("not today")

        monkeypatch.setattr(engine.engine, "capacity", silent)
        await engine.start()
        assert engine.told.capacity.kv_tokens == 80 * 32
        assert any("it does not tell: not today" in line for line in heard.lines)
        await engine.close()

    asyncio.run(live())


def recipe_of(folder: Path, **changes: Any) -> Any:
    return started(folder, Heard(), **changes)


def test_an_untested_version_does_not_start_or_starts_without_the_scheduler_and_says_so(tmp_path: Path) -> None:
    python = scripted_python(tmp_path, "0.99.0")
    with pytest.raises(EngineError, match=r"not tested with vLLM 0\.99\.0"):
        recipe_of(tmp_path, python=python)
    told = settings(tmp_path, python=python, model=str(tmp_path / "sound"), reservation={"unknown_version": "native"})
    (plan,) = slot_plans(told)
    engine = told.upstreams["m"].engine
    assert isinstance(engine, Vllm)
    recipe = vllm_recipe("m", "m-vllm", engine, plan)
    assert "NOTHING IS RESERVED" in recipe.warnings[0]
    assert b"scheduler-cls" not in recipe.launch.first_line


def test_an_environment_without_tidegate_is_named_with_what_to_do(tmp_path: Path) -> None:
    python = scripted_python(tmp_path, is_bare=True)
    with pytest.raises(EngineError, match="pip install --no-deps tidegate, or set reservation"):
        recipe_of(tmp_path, python=python)
    off = recipe_of(tmp_path, python=python, model=str(tmp_path / "sound"), reservation={"rule": "off"})
    assert off.told.capacity.sequences == 4


def command_words(folder: Path, **changes: Any) -> tuple[list[str], dict[str, str]]:
    told = settings(folder, **changes)
    (plan,) = slot_plans(told)
    engine = told.upstreams["m"].engine
    assert isinstance(engine, Vllm)
    order = json.loads(vllm_recipe("m", "m-vllm", engine, plan).launch.first_line)
    return order["command"], order["env"]


def test_every_word_of_the_section_reaches_the_command_and_keys_only_the_environment(tmp_path: Path) -> None:
    words, env = command_words(
        tmp_path,
        device="cpu",
        kv_blocks=None,
        block_tokens=None,
        kv_bytes="3GiB",
        env={"LD_PRELOAD": "x"},
        devices=["GPU-1"],
        cpus="0",
        extra=["--enforce-eager"],
        priority=False,
        prefix_caching=False,
    )
    assert words[:3] == ["taskset", "-c", "0"]
    assert words[-1] == "--enforce-eager"
    assert {"fcfs", "--no-enable-prefix-caching", "127.0.0.1"} <= set(words)
    assert "--gpu-memory-utilization" not in words
    assert words[words.index("--scheduler-cls") + 1].endswith(".ReservingScheduler")
    assert words[words.index("--kv-cache-memory-bytes") + 1] == str(3 * GIB)
    assert "VLLM_CPU_KVCACHE_SPACE" not in env
    assert (env["LD_PRELOAD"], env["CUDA_VISIBLE_DEVICES"]) == ("x", "GPU-1")
    assert len(env["VLLM_API_KEY"]) >= 32
    assert env["VLLM_API_KEY"] not in " ".join(words)


@pytest.mark.parametrize(
    ("asynchronous", "scheduler"), [(True, "AsyncReservingScheduler"), (False, "ReservingScheduler")]
)
def test_the_scheduler_is_the_one_for_how_steps_overlap(tmp_path: Path, asynchronous: bool, scheduler: str) -> None:
    words, _ = command_words(tmp_path, asynchronous=asynchronous)
    assert words[words.index("--scheduler-cls") + 1] == f"tidegate.engines.vllm.scheduler.{scheduler}"


def test_a_pool_of_blocks_on_a_cpu_is_cut_from_host_memory_that_holds_it(tmp_path: Path) -> None:
    _, env = command_words(tmp_path, device="cpu", kv_blocks=2000)
    # 2000 blocks of 32 tokens of 23 040 bytes.
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "2"


def test_more_sequences_than_slots_are_lowered_before_the_engine_starts(tmp_path: Path) -> None:
    # C1: a pool of 24 GiB in slots of 256 MiB is 96 slots.
    asked: dict[str, Any] = {"sequences": 256, "kv_blocks": None, "block_tokens": None, "kv_bytes": "24GiB"}
    told = settings(tmp_path, "{slot_size_mib: 256}", **asked)
    (plan,) = slot_plans(told)
    assert (plan.slots, plan.sequences, plan.recommended_sequences) == (96, 96, 76)
    (line,) = told.warnings
    assert line.startswith("256 sequences asked of m-vllm, which has 96 slots")
    engine = told.upstreams["m"].engine
    assert isinstance(engine, Vllm)
    order = json.loads(vllm_recipe("m", "m-vllm", engine, plan).launch.first_line)["command"]
    assert order[order.index("--max-num-seqs") + 1] == "96"
    with pytest.raises(ConfigError, match="256 sequences asked of m-vllm, which has 96 slots"):
        settled(told_with(told, overcommit="fail"))


def told_with(told: Settings, **slots: Any) -> Settings:
    """The same before it is settled, with other slots."""
    upstream = told.upstreams["m"]
    assert isinstance(upstream.engine, Vllm)
    open_again = upstream.model_copy(update={"engine": upstream.engine.model_copy(update={"bytes_per_token": None})})
    return told.model_copy(update={"upstreams": {"m": open_again}, "slots": told.slots.model_copy(update=slots)})


def test_sequences_that_nobody_gave_are_four_fifths_of_the_slots(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"sequences": None, "kv_blocks": None, "block_tokens": None, "kv_bytes": "24GiB"}
    (plan,) = slot_plans(settings(tmp_path, "{slot_size_mib: 256}", **asked))
    assert plan.sequences == 76


def test_a_checkpoint_that_the_planner_does_not_know_leaves_the_pool_to_the_engine(tmp_path: Path) -> None:
    model = tmp_path / "odd"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "odd", "torch_dtype": "float16"}')
    asked: dict[str, Any] = {"kv_blocks": None, "block_tokens": None, "kv_bytes": "1GiB", "model": str(model)}
    (plan,) = slot_plans(settings(tmp_path, **asked))
    assert (plan.slots, plan.sequences) == (None, 4)


def test_check_and_explain_show_the_command_without_its_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(configuration(tmp_path))
    checked = run(capsys, "check", file)
    assert checked.status == 0
    assert "m-vllm at vllm engine, 10 slots, 4 sequences" in checked.out
    explained = run(capsys, "explain", "--config", file)
    for said in (checked.out, explained.out):
        assert "-m vllm.entrypoints.openai.api_server" in said
        assert "--port PORT" in said
    told = json.loads(run(capsys, "explain", "--config", file, "--json").out)
    assert told["replicas"][0]["command"].endswith("'{\"tidegate\": {}}'")


def test_check_finds_an_engine_that_could_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configuration(tmp_path, python=scripted_python(tmp_path, "0.99.0"))
    checked = run(capsys, "check", str(file))
    assert checked.status == 1
    assert "upstreams.m.engine: vLLM 0.99.0 for m" in checked.err


PORTS = ("--port", "0", "--admin-port", "0")


def test_serve_starts_it_says_its_slots_and_ends_it(tmp_path: Path) -> None:
    async def live() -> None:
        configuration(tmp_path)
        async with serving(*PORTS, folder=tmp_path) as served:
            await served.printed("Server ready. Free slots: 10/10")
            assert "Slot allocation completed. Free slots: 10/10" in served.text
            assert "m-vllm: worker " in served.text
            page = await fetch(f"{served.admin}/metrics", timeout_s=WITHIN_S)
            assert b'tidegate_engine_preemptions_total{replica="m-vllm"} 3.0' in page.body
            assert await served.stop() == 0

    asyncio.run(live())


def test_the_service_is_there_while_its_engine_starts_and_goes_on_when_another_cannot(tmp_path: Path) -> None:
    async def live() -> None:
        python = scripted_python(tmp_path)
        engines = [section(tmp_path, python=python, model=checkpoint(tmp_path, name)) for name in ("refused", "sound")]
        upstreams = {name: {"engine": engine} for name, engine in zip(("bad", "good"), engines, strict=True)}
        (tmp_path / "tidegate.yaml").write_text(json.dumps({"upstreams": upstreams}))
        async with serving(*PORTS, folder=tmp_path) as served:
            await served.printed("OpenAI API at")
            assert "serves at" not in served.text
            unready = await fetch(f"{served.api}/ready", timeout_s=WITHIN_S)
            assert (unready.status, unready.body) == (503, b'{"status":"no replica is ready"}')
            await served.printed("good-vllm: vLLM 0.32.0 serves at")
            await served.printed("Server ready.")
            assert "bad-vllm: the engine: vLLM ended with status 1 during its start" in served.text
            assert (await served.ask("/ready"))[0] == 200

    asyncio.run(live())


def test_a_replica_sleeps_and_wakes_by_order_and_gets_no_requests_meanwhile(tmp_path: Path) -> None:
    async def live() -> None:
        configuration(tmp_path, can_sleep=True)
        async with serving(*PORTS, folder=tmp_path) as served:
            await served.printed("Server ready.")
            assert await served.ask("/admin/replicas/m-vllm/sleep", "POST") == (200, SLEEPS)
            await asleep(served, True)
            assert (await served.ask("/ready"))[0] == 503
            assert await served.ask("/admin/replicas/m-vllm/wake", "POST") == (200, {**SLEEPS, "asleep": False})
            await asleep(served, False)
            assert (await served.ask("/admin/view"))[1]["replicas"]["m-vllm"]["draining"] is False
            status, refused = await served.ask("/admin/replicas/other/sleep", "POST")
            assert (status, refused["error"]["code"]) == (409, "not_done")

    asyncio.run(live())


SLEEPS = {"replica": "m-vllm", "asleep": True}


async def asleep(served: Served, wanted: bool) -> None:
    async with asyncio.timeout(WITHIN_S):
        while (await served.ask("/admin/view"))[1]["replicas"]["m-vllm"]["ready"] is wanted:  # noqa: ASYNC110 - told by another process
            await asyncio.sleep(0.05)


def test_serve_does_not_start_what_cannot_run(tmp_path: Path) -> None:
    async def live() -> None:
        configuration(tmp_path, model=checkpoint(tmp_path, "refused"))
        async with serving(*PORTS, folder=tmp_path) as served:
            assert await served.ended() == 1
            assert "during its start: ValidationError: 1 validation error for ModelConfig" in served.text
            assert "it stays down" in served.text

    asyncio.run(live())
