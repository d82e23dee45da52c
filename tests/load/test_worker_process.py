"""Workers that do not do what a worker does. Real processes, of one line each."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tidegate.load.crew_messages import Begin, Halt
from tidegate.load.worker_process import WorkerLostError, WorkerProcess

HEAD = (
    "import sys, socket, msgspec, time\n"
    "from tidegate.load.crew_messages import *\n"
    "s = socket.socket(fileno=int(sys.argv[1]))\n"
    "def tell(m):\n"
    "    body = msgspec.msgpack.encode(m)\n"
    "    s.sendall(len(body).to_bytes(4) + body)\n"
)


def command(script: str) -> tuple[str, ...]:
    return sys.executable, "-c", HEAD + script


def lost(script: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said about a worker that runs ``script`` when it is told to begin."""
    monkeypatch.setattr("tidegate.load.worker_process.ENDS_WITHIN_S", 0.3)

    async def main() -> str:
        worker = await WorkerProcess.spawn(command(script))
        try:
            async with asyncio.timeout(20):
                with pytest.raises(WorkerLostError) as raised:
                    await worker.finished(Begin(0.0), lambda _: None)
                return str(raised.value)
        finally:
            await worker.close()

    return asyncio.run(main())


def test_one_that_ends_says_how_and_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lost("sys.stderr.write('first\\nlast words\\n'); sys.exit(3)", monkeypatch)
    assert found.endswith("ended with status 3; it wrote:\nfirst\nlast words")


def test_one_that_only_closes_its_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lost("s.close(); time.sleep(60)", monkeypatch)
    assert "the connection to it is closed" in found


def test_one_that_says_what_no_worker_says_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lost("s.sendall((3).to_bytes(4) + b'abc'); time.sleep(60)", monkeypatch)
    assert "could not go on: a message that does not decode" in found


def test_one_that_speaks_out_of_turn_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lost("tell(Prepared()); time.sleep(60)", monkeypatch)
    assert "said Prepared out of turn" in found


def test_messages_that_nobody_waits_for_change_nothing() -> None:
    async def main() -> None:
        script = "tell(Batch(0.0, [], 1, 1, 0, [])); tell(Broken('broke'))\ns.recv(1); s.recv(9999)"
        worker = await WorkerProcess.spawn(command(script))
        async with asyncio.timeout(20):
            with pytest.raises(WorkerLostError, match="could not go on: broke"):
                await worker.prepared(Halt())
            await worker.close()
            with pytest.raises(WorkerLostError, match=r"could not go on: broke$"):
                await worker.prepared(Halt())

    asyncio.run(main())


def test_no_room_for_a_process_is_an_oserror() -> None:
    async def main() -> None:
        await WorkerProcess.spawn(("/nowhere/at-all",))

    with pytest.raises(FileNotFoundError):
        asyncio.run(main())
