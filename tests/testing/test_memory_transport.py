from __future__ import annotations

import asyncio

import pytest

from tidegate.testing.memory_transport import MemoryTransport, Split, every, memory_pair, whole
from tidegate.testing.virtual_loop import run_virtually


class End(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: MemoryTransport
        self.reads: list[bytes] = []
        self.events: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.reads.append(data)

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost" if exc is None else type(exc).__name__)


async def settled() -> None:
    await asyncio.sleep(1)


def pair(split: Split = whole) -> tuple[End, End]:
    client, server = End(), End()
    memory_pair(client, server, split=split, peername="192.0.2.7")
    return client, server


@pytest.mark.parametrize(("split", "reads"), [(whole, [b"abcde", b"f"]), (every(2), [b"ab", b"cd", b"e", b"f"])])
def test_writes_arrive_in_order_cut_as_asked(split: Split, reads: list[bytes]) -> None:
    async def main() -> None:
        client, server = pair(split)
        client.transport.write(b"abcde")
        client.transport.write(b"f")
        assert server.reads == []
        await settled()
        assert server.reads == reads

    run_virtually(main())


def test_what_was_written_before_a_close_still_arrives() -> None:
    async def main() -> None:
        client, server = pair()
        client.transport.write(b"last words")
        client.transport.close()
        client.transport.write(b"too late")
        await settled()
        assert (server.reads, server.events, client.events) == ([b"last words"], ["lost"], ["lost"])

    run_virtually(main())


def test_an_abort_loses_what_was_not_delivered() -> None:
    async def main() -> None:
        client, server = pair()
        client.transport.write(b"never seen")
        client.transport.abort()
        await settled()
        assert (server.reads, server.events, client.events) == ([], ["ConnectionResetError"], ["lost"])

    run_virtually(main())


def test_a_reader_that_stops_stops_the_writer() -> None:
    async def main() -> None:
        client, server = pair()
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=10, low=0)
        client.transport.write(b"x" * 11)
        assert client.events == ["pause"]
        await settled()
        assert (server.reads, client.transport.get_write_buffer_size()) == ([], 11)
        server.transport.resume_reading()
        await settled()
        assert (server.reads, client.events) == ([b"x" * 11], ["pause", "resume"])

    run_virtually(main())


def test_the_server_sees_the_clients_address() -> None:
    async def main() -> None:
        _, server = pair()
        assert server.transport.get_extra_info("peername")[0] == "192.0.2.7"
        assert server.transport.is_reading()
        assert server.transport.can_write_eof()
        server.transport.write_eof()
        assert not server.transport.is_closing()

    run_virtually(main())
