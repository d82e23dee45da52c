from __future__ import annotations

import asyncio
import os
import select
import sys

import pytest

from tests.fleet import children
from tidegate.engines.launch import Launch
from tidegate.errors import EngineError
from tidegate.fleet.engine_process import CannotRunError, EngineProcess


async def _started(source: str, lines: list[str]) -> EngineProcess:
    return await EngineProcess.spawn(children.launch(source, b"secret\n"), lines.append)


def lived(source: str, grace_s: float = 5.0) -> tuple[str, list[str], int]:
    """Start it, wait until it listens, stop it; the URL, its lines and its status."""

    async def live() -> tuple[str, list[str], int]:
        lines: list[str] = []
        process = await _started(source, lines)
        try:
            url = await process.listening()
        finally:
            status = await process.stop(grace_s)
        return url, lines, status

    return asyncio.run(live())


def test_it_says_where_it_listens_and_everything_else_is_passed_on() -> None:
    url, lines, status = lived(children.GREETS)
    assert url == "http://127.0.0.1:9"
    assert sorted(lines) == ["odd", "told secret"]
    assert status == -15


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        (children.FAILS, EngineError, "no luck"),
        (children.DIES_SILENTLY, EngineError, "ended with status 5"),
        (children.CANNOT, CannotRunError, "install it"),
    ],
)
def test_one_that_ends_before_it_listens_is_an_error_in_its_own_words(
    source: str, kind: type[EngineError], words: str
) -> None:
    with pytest.raises(EngineError, match=words) as caught:
        lived(source)
    assert type(caught.value) is kind


def test_the_reason_of_a_kill_names_the_signal() -> None:
    async def live() -> str:
        process = await _started(children.CRASHES, [])
        try:
            await process.listening()
            return process.reason(await process.ended())
        finally:
            await process.stop(5.0)

    assert asyncio.run(live()) == "killed by SIGKILL"


def test_a_command_that_does_not_exist_is_an_error() -> None:
    async def live() -> None:
        await EngineProcess.spawn(Launch(name="x", command=("/does/not/exist",)), print)

    with pytest.raises(EngineError, match="/does/not/exist cannot be started"):
        asyncio.run(live())


def test_one_that_ignores_the_request_to_stop_is_killed_after_the_grace() -> None:
    _, _, status = lived(children.IS_STUBBORN, grace_s=0.05)
    assert status == -9


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has descriptors of processes")
def test_what_it_started_ends_with_it() -> None:
    async def live() -> bool:
        started: asyncio.Queue[str] = asyncio.Queue()
        process = await EngineProcess.spawn(children.launch(children.HAS_A_CHILD), started.put_nowait)
        try:
            grandchild = os.pidfd_open(int((await started.get()).split()[1]))
        finally:
            await process.stop(5.0)
        try:
            return bool(select.select([grandchild], [], [], 5.0)[0])
        finally:
            os.close(grandchild)

    assert asyncio.run(live())


def test_its_memory_is_told_while_it_lives() -> None:
    async def live() -> tuple[int | None, int | None]:
        process = await _started(children.SERVES, [])
        try:
            await process.listening()
            alive = process.resident_bytes
        finally:
            await process.stop(5.0)
        return alive, process.resident_bytes

    alive, dead = asyncio.run(live())
    assert alive is not None
    assert 2**20 < alive < 2**30
    assert dead is None


def test_a_long_line_comes_in_pieces_and_nothing_is_lost() -> None:
    lines = lived(f"print('x' * 200_000); print('y', end='', flush=True); print(); {children.SERVES}")[1]
    assert "".join(lines) == "x" * 200_000 + "y"
    assert len(lines) > 2


def test_it_runs_in_a_session_of_its_own() -> None:
    lines = lived(f"import os; print(os.getsid(0) == os.getpid(), flush=True); {children.SERVES}")[1]
    assert lines == ["True"]
