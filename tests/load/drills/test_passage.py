"""One connection through the fault proxy, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tidegate.load.drills.impairment import RETRANSMISSION_S, Cut, Impairment
from tidegate.load.drills.passage import Ends, Line, Passage
from tidegate.load.drills.wiretap import Ledger, Wiretap
from tidegate.testing.memory_transport import MemoryTransport, memory_pair
from tidegate.testing.virtual_loop import run_virtually


class Far(asyncio.Protocol):
    """What stands at the other end of one of the proxy's sockets."""

    def __init__(self) -> None:
        self.came: list[tuple[float, bytes]] = []
        self.lost: Exception | None = None
        self.is_gone = False

    def data_received(self, data: bytes) -> None:
        self.came.append((asyncio.get_running_loop().time(), data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self.is_gone = exc, True


def ends() -> tuple[Ends, Far, MemoryTransport]:
    """The proxy's side, and the other end of it."""
    far, loop = Far(), asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    near = asyncio.StreamReaderProtocol(reader)
    far_transport, near_transport = memory_pair(far, near)
    return Ends(reader, asyncio.StreamWriter(near_transport, near, reader, loop)), far, far_transport


@dataclass
class Table:
    """A passage that runs, with both who talk through it."""

    line: Line
    client: Far
    client_writes: Callable[[bytes], None]
    server: Far
    server_transport: MemoryTransport
    running: asyncio.Task[None]


def played(impairment: Impairment, act: Callable[[Table], Coroutine[Any, Any, None]]) -> Table:
    async def main() -> Table:
        line = Line(1)
        line.take(impairment)
        client, far_client, client_transport = ends()
        server, far_server, server_transport = ends()
        task = asyncio.create_task(Passage(line, client, server, Wiretap(Ledger())).run())
        table = Table(line, far_client, client_transport.write, far_server, server_transport, task)
        await act(table)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return table

    return run_virtually(main())


def times(far: Far) -> list[float]:
    """Seconds since the virtual loop began, at 1000."""
    return [round(at - 1000.0, 6) for at, _ in far.came]


def test_a_delay_holds_up_pieces_and_not_each_other() -> None:
    async def act(table: Table) -> None:
        table.client_writes(b"a")
        await asyncio.sleep(0.1)
        table.client_writes(b"b")
        table.server_transport.write(b"c")
        await asyncio.sleep(5.0)

    table = played(Impairment(delay_s=0.5), act)
    assert times(table.server) == [0.5, 0.6]
    assert times(table.client) == [0.6]


def test_a_lost_piece_comes_a_retransmission_later() -> None:
    async def act(table: Table) -> None:
        table.client_writes(b"a")
        await asyncio.sleep(5.0)

    assert times(played(Impairment(loss_share=1.0), act).server) == [RETRANSMISSION_S]


def test_a_line_whose_packets_are_delayed_elsewhere_delays_nothing() -> None:
    async def act(table: Table) -> None:
        table.line.loses_packets = True
        table.client_writes(b"a")
        await asyncio.sleep(5.0)

    assert times(played(Impairment(delay_s=1.0, loss_share=1.0), act).server) == [0.0]


def test_a_stall_ends_when_it_is_healed_and_nothing_is_missing() -> None:
    async def act(table: Table) -> None:
        table.client_writes(b"a")
        table.server_transport.write(b"b")
        await asyncio.sleep(3.0)
        assert (table.client.came, table.server.came) == ([], [])
        table.line.take(Impairment())
        await asyncio.sleep(1.0)

    table = played(Impairment(cut=Cut.STALL), act)
    assert times(table.server) == [3.0]
    assert times(table.client) == [3.0]


def test_half_open_loses_the_answer_and_the_end_of_it_and_then_resets() -> None:
    async def act(table: Table) -> None:
        table.client_writes(b"a")
        table.server_transport.write(b"b")
        await asyncio.sleep(1.0)
        table.server_transport.close()
        await asyncio.sleep(60.0)
        assert not table.client.is_gone
        table.line.take(Impairment())
        await asyncio.sleep(1.0)

    table = played(Impairment(cut=Cut.HALF_OPEN), act)
    assert [data for _, data in table.server.came] == [b"a"]
    assert table.client.came == []
    assert isinstance(table.client.lost, ConnectionResetError)


def test_a_reset_ends_both_connections() -> None:
    async def act(table: Table) -> None:
        table.client_writes(b"a")
        await asyncio.sleep(1.0)
        assert table.running.done()

    table = played(Impairment(reset_share=1.0), act)
    assert table.line.resets == 1
    assert isinstance(table.client.lost, ConnectionResetError)
    assert isinstance(table.server.lost, ConnectionResetError)


def test_a_client_that_is_reset_takes_the_server_connection_with_it() -> None:
    async def act(table: Table) -> None:
        table.client_writes(b"a")
        await asyncio.sleep(1.0)
        table.server_transport.abort()
        await asyncio.sleep(1.0)

    assert isinstance(played(Impairment(), act).client.lost, ConnectionResetError)
