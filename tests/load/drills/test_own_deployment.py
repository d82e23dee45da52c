"""The deployment of a drill's own, with small processes in place of engines and gateway."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import EngineError
from tidegate.load.drills.catalogue import OWN_FAULTS
from tidegate.load.drills.drill_engine import OwnEngine
from tidegate.load.drills.gateway_faults import DATA_KILLED, GATEWAY_KILLED
from tidegate.load.drills.memory_cap import MemoryCap
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.own_gateway import OwnGateway
from tidegate.load.drills.replica_faults import FREEZE, LOST, RESTART
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.to_its_end import to_its_end
from tidegate.load.drills.until import until
from tidegate.wire.fetch import fetch

ROOT = Path(__file__).resolve().parents[2]
ENGINE = (sys.executable, str(ROOT / "cli" / "scripted_engine.py"))
GATEWAY = (sys.executable, str(ROOT / "load" / "drills" / "scripted_gateway.py"))
LINES: list[str] = []


def scripted(name: str) -> OwnEngine:
    return OwnEngine(name, LINES.append, command=ENGINE)


SETUP = Setup(engine=scripted)


def play(folder: Path, work: Any, replicas: int = 1) -> OwnDeployment:
    """``work(own)`` on a deployment that is closed afterwards."""
    own = OwnDeployment(folder, replicas, OWN_FAULTS, LINES.append, GATEWAY)

    async def whole() -> None:
        try:
            await own.prepare(SETUP)
            await work(own)
        finally:
            await own.close()

    asyncio.run(whole())
    return own


async def answers(url: str) -> bool:
    try:
        return (await fetch(f"{url}/health", timeout_s=1.0)).status == 200
    except OSError:
        return False


async def is_stopped(pid: int | None) -> bool:
    return state_of(pid) == "T"


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def state_of(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_replica_that_is_lost_is_gone_with_its_port_and_comes_back_at_it(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        engine, url = own.embedded("replica-1"), own.between["replica-1"].url
        assert await answers(url)
        await own.break_(LOST, "replica-1")
        assert (engine.pid, engine.is_serving, engine.resident_bytes) == (None, False, None)

        async def is_gone() -> bool:
            return not await answers(url)

        await until(is_gone, 5.0, "the port is still open")
        await own.restore(LOST, "replica-1")
        await until(lambda: answers(url), 5.0, "the port is not open again")
        assert (engine.lives, own.between["replica-1"].url) == (2, url)

    own = play(tmp_path, work)
    assert own.engines == {}


def test_a_replica_that_is_killed_is_started_again_by_its_supervisor(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        engine = own.embedded("replica-1")
        old = engine.pid
        await own.break_(RESTART, "replica-1")

        async def is_another() -> bool:
            return engine.lives == 2 and engine.pid != old

        await until(is_another, 5.0, "it was not started again")
        await own.restore(RESTART, "replica-1")
        assert (own.resident_bytes("replica-1") or 0) > 1 << 20

    play(tmp_path, work)


def test_a_frozen_replica_says_nothing_until_it_is_thawed(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        await own.break_(FREEZE, "replica-1")
        await until(lambda: is_stopped(own.pid("replica-1")), 5.0, "it is not frozen")
        await own.restore(FREEZE, "replica-1")
        assert await answers(own.engines["replica-1"].url)

    play(tmp_path, work)


def test_both_ways_of_killing_the_gateway_bring_another(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        gateway = own.gateway
        data = gateway.data_pid()
        await own.break_(DATA_KILLED, None)
        assert data is not None
        old = gateway.pid
        await own.break_(GATEWAY_KILLED, None)

        async def is_another() -> bool:
            return gateway.lives == 2 and gateway.pid != old

        await until(is_another, 5.0, "it was not started again")
        await own.restore(GATEWAY_KILLED, None)
        assert await gateway.is_ready()
        assert "started" in gateway.log

    play(tmp_path, work)


def test_the_gateway_is_told_of_an_engine_that_comes_and_one_that_goes(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        await own.add_engine("replica-9")
        await own.reload()
        assert set((await own.view() or {})["replicas"]) == {"replica-1", "replica-9"}
        await own.reload(["replica-1"])
        await own.remove_engine("replica-9")
        assert set((await own.view() or {})["replicas"]) == {"replica-1"}
        assert [row["request_id"] for row in await own.rows()] == ["made-1"]
        own.gateway.config_path.write_text("refuse")
        with pytest.raises(EngineError, match="refuses its new configuration"):
            await own.gateway.reload({"refuse": True})

    play(tmp_path, work)


def test_what_runs_as_it_is_wanted_is_kept_and_else_started_anew(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        gateway = own.gateway
        await own.prepare(SETUP)
        assert own.gateway is gateway
        await own.prepare(Setup(engine=scripted, config={"tail": {}}, replicas=2))
        assert own.gateway is not gateway
        assert [*own.replicas] == ["replica-1", "replica-2"]
        assert own.duplicated() == 0

    play(tmp_path, work)


def test_a_breaker_that_a_drill_left_open_is_closed_by_requests(tmp_path: Path) -> None:
    async def work(own: OwnDeployment) -> None:
        await own.prepare(Setup(engine=scripted, config={"scripted": "kept_out"}))
        view = await own.view()
        assert view is not None
        assert {each["breaker"] for each in view["replicas"].values()} == {"closed"}

    play(tmp_path, work)


def test_what_it_knows_before_it_is_started(tmp_path: Path) -> None:
    own = OwnDeployment(tmp_path, 2, OWN_FAULTS, LINES.append)
    assert [*own.replicas] == ["replica-1", "replica-2"]
    assert own.most_broken == 2
    assert not own.why_not(LOST)
    assert own.why_not("earthquake") == "no fault is called 'earthquake'"
    with pytest.raises(EngineError, match="not been started"):
        _ = own.gateway
    with pytest.raises(EngineError, match="no embedded engine"):
        own.embedded(None)
    own.remarks.append("so it was")
    assert (own.take_remarks(), own.take_remarks()) == (["so it was"], [])


def test_a_gateway_that_is_never_ready_is_told_with_its_log(tmp_path: Path) -> None:
    async def work() -> None:
        gateway = OwnGateway(tmp_path, {"scripted": "never_ready"}, {}, Setup(), GATEWAY)
        gateway.kill()
        gateway.kill_data_process()
        try:
            starting = asyncio.create_task(gateway.start())

            async def has_started() -> bool:
                return "started" in gateway.log

            await until(has_started, 10.0, "it did not start")
            with pytest.raises(EngineError, match="started"):
                await gateway.ready(0.05)
            starting.cancel()
        finally:
            await gateway.close()
        assert gateway.pid is None

    asyncio.run(work())


def test_output_goes_where_the_setup_says(tmp_path: Path) -> None:
    async def work() -> None:
        setup = Setup(stdout=str(tmp_path / "out"), prefix=("/usr/bin/env", "A=b"))
        config: dict[str, Any] = {"upstreams": {"m": {"replicas": []}}}
        gateway = OwnGateway(tmp_path, config, {}, setup, GATEWAY)
        try:
            await gateway.start()
        finally:
            await gateway.close()
        assert (tmp_path / "out").read_text() == "started\n"
        assert gateway.log == ""
        await gateway.close()

    asyncio.run(work())


def test_an_engine_joins_its_cap_at_every_start_and_leaves_none(tmp_path: Path) -> None:
    cap = MemoryCap("a", (tmp_path,))

    async def work() -> None:
        cap.folder.mkdir()
        (cap.folder / "memory.max").touch()
        engine = OwnEngine("a", LINES.append, cap, ENGINE)
        await engine.start()
        assert (cap.folder / "cgroup.procs").read_text() == f"{engine.pid}\n"
        for path in cap.folder.iterdir():
            path.unlink()
        await engine.close()
        engine.signal(signal.SIGKILL)

    asyncio.run(work())
    assert not cap.folder.exists()


def test_work_that_puts_things_back_is_finished_before_a_cancellation() -> None:
    done: list[str] = []
    gate = asyncio.Event()

    async def put_back() -> None:
        await gate.wait()
        done.append("back")

    async def work() -> None:
        task = asyncio.create_task(to_its_end(put_back()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert done == ["back"]


def test_waiting_for_what_never_holds_is_told() -> None:
    async def never() -> bool:
        return False

    with pytest.raises(EngineError, match="it does not come within 0 s"):
        asyncio.run(_quietly(until(never, 0.0, "it does not come")))


async def _quietly(work: Coroutine[Any, Any, float]) -> None:
    await work


def test_nothing_of_a_closed_deployment_is_left(tmp_path: Path) -> None:
    pids: list[int] = []

    async def work(own: OwnDeployment) -> None:
        pids.extend(pid for pid in (own.gateway.pid, own.gateway.data_pid(), own.pid("replica-1")) if pid)

    play(tmp_path, work)
    assert len(pids) == 3

    async def are_gone() -> bool:
        return not any(map(exists, pids))

    asyncio.run(_quietly(until(are_gone, 5.0, "processes are left")))
