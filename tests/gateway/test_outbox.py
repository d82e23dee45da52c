"""Rows reach the parent in batches; what is dropped is counted."""

from __future__ import annotations

import asyncio
import socket

from tests.gateway.test_channel import ROW, Wire
from tidegate.gateway.channel import Channel, ChildEnd, open_child_end, open_parent_end
from tidegate.gateway.messages import Down, Records, Up
from tidegate.gateway.outbox import ROWS_PER_MESSAGE, Outbox
from tidegate.lens.row import Row


def rows(count: int) -> list[Row]:
    return [Row(n, f"req-{n}", "/v1/completions", 200, "", 1.0, 2.0, 10) for n in range(count)]


def child_end(wire: Wire) -> ChildEnd:
    channel: ChildEnd = Channel(Down, lambda message: None, lambda error: None)
    channel.connection_made(wire)
    return channel


def received(wire: Wire) -> list[Up]:
    messages: list[Up] = []
    reader: Channel[Down, Up] = Channel(Up, messages.append, lambda error: None)
    reader.connection_made(Wire())
    reader.listen()
    reader.data_received(wire.written)
    return messages


def test_a_full_batch_leaves_at_once_and_the_rest_at_the_drain() -> None:
    async def run() -> None:
        wire = Wire()
        outbox = Outbox(child_end(wire), asyncio.get_running_loop())
        for row in rows(ROWS_PER_MESSAGE + 2):
            outbox.add(row)
        assert wire.written == b""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        outbox.drain()
        batches = [message for message in received(wire) if isinstance(message, Records)]
        assert [len(batch.rows) for batch in batches] == [ROWS_PER_MESSAGE, 2]
        assert [row.id for batch in batches for row in batch.rows] == list(range(ROWS_PER_MESSAGE + 2))
        assert outbox.lost == 0
        assert len(outbox) == 0

    asyncio.run(run())


def test_while_the_parent_does_not_read_the_oldest_rows_are_lost_and_counted() -> None:
    async def run() -> None:
        wire = Wire()
        channel = child_end(wire)
        outbox = Outbox(channel, asyncio.get_running_loop(), most_waiting=10)
        channel.pause_writing()
        for row in rows(25):
            outbox.add(row)
        outbox.flush()
        assert wire.written == b""
        assert len(outbox) == 10
        channel.resume_writing()
        outbox.drain()
        [message] = received(wire)
        assert isinstance(message, Records)
        assert message.lost == 15
        assert [row.id for row in message.rows] == list(range(15, 25))

    asyncio.run(run())


def test_rows_for_a_parent_that_is_gone_count_as_lost() -> None:
    async def run() -> None:
        wire = Wire()
        outbox = Outbox(child_end(wire), asyncio.get_running_loop())
        outbox.add(ROW)
        wire.abort()
        outbox.flush()
        outbox.drain()
        assert outbox.lost == 1

    asyncio.run(run())


def test_a_few_rows_arrive_without_being_pushed() -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        arrived = asyncio.Event()
        messages: list[Up] = []

        def keep(message: Up) -> None:
            messages.append(message)
            arrived.set()

        parent = await open_parent_end(ours, keep, lambda error: None)
        child = await open_child_end(theirs, lambda message: None, lambda error: None)
        Outbox(child, asyncio.get_running_loop()).add(ROW)
        async with asyncio.timeout(5):
            await arrived.wait()
        assert messages == [Records([ROW], 0)]
        parent.close()
        child.close()

    asyncio.run(run())
