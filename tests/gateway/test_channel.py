"""The channel between parent and data process: framing, order, bounds and endings."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ProtocolError
from tidegate.gateway.channel import LARGEST_FRAME_BYTES, Channel, ChildEnd, ParentEnd, open_child_end, open_parent_end
from tidegate.gateway.messages import (
    Applied,
    Apply,
    AskMetrics,
    AskView,
    Down,
    Drain,
    Drained,
    DrainReplica,
    Failed,
    Log,
    MetricsSnapshot,
    Observe,
    PollSoon,
    Ready,
    Records,
    Start,
    Stop,
    Up,
    View,
)
from tidegate.lens.metrics import Metrics
from tidegate.lens.row import Row
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.reading import Reading

ROW = Row(7, "req-7", "/v1/chat/completions", 200, "", 10.0, 11.5, 200, outcome=Outcome.OK, waited_for=Reason.SLOTS)
SNAPSHOT = Metrics(["m"], ["interactive"], 1e9).snapshot({"replicas": {"a": {"slots_free": 3}}}, 2)
UP: list[Up] = [
    Ready("127.0.0.1", 8000, 42),
    Failed("port 8000 is taken"),
    Records([ROW, ROW], 3),
    MetricsSnapshot(SNAPSHOT),
    View({"open": 1, "deadline": float("inf")}, 12.5),
    Applied(["replica b added"], ""),
    PollSoon("a"),
    Log("warning", "slow"),
    Drained(0),
]
DOWN: list[Down] = [
    Start({"port": 8000, "replicas": [{"name": "a"}]}),
    Observe("a", Reading(at=1.5, running=2, kv_used_tokens=100)),
    Apply({"port": 8000}),
    AskView(),
    AskMetrics(),
    DrainReplica("a", True),
    Drain(30.0),
    Stop(),
]


class Pair:
    """Both ends, wired together, with everything each received."""

    def __init__(self) -> None:
        self.at_parent: list[Up] = []
        self.at_child: list[Down] = []
        self.closed: list[tuple[str, Exception | None]] = []
        self.parent: ParentEnd
        self.child: ChildEnd

    async def open(self) -> None:
        ours, theirs = socket.socketpair()
        self.parent = await open_parent_end(ours, self.at_parent.append, lambda e: self.closed.append(("parent", e)))
        self.child = await open_child_end(theirs, self.at_child.append, lambda e: self.closed.append(("child", e)))

    async def close(self) -> None:
        self.parent.close()
        self.child.close()
        await until(lambda: len(self.closed) == 2)


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until ``holds``."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - what is waited for is a state of several objects
            await asyncio.sleep(0)


def is_writable(channel: ParentEnd) -> bool:
    return channel.is_writable


def with_pair(body: Callable[[Pair], Awaitable[None]]) -> None:
    async def run() -> None:
        pair = Pair()
        await pair.open()
        try:
            await body(pair)
        finally:
            await pair.close()

    asyncio.run(run())


def test_every_message_arrives_equal_and_in_order_in_both_directions() -> None:
    async def body(pair: Pair) -> None:
        for up in UP:
            assert pair.child.send(up)
        for down in DOWN:
            assert pair.parent.send(down)
        await until(lambda: len(pair.at_parent) == len(UP) and len(pair.at_child) == len(DOWN))
        assert pair.at_parent == UP
        assert pair.at_child == DOWN

    with_pair(body)


def test_what_was_sent_before_an_end_opened_arrives_after_its_owner_has_it() -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        closed: list[Exception | None] = []
        had: list[bool] = []
        child: ChildEnd | None = None
        parent = await open_parent_end(ours, lambda message: None, closed.append)
        parent.send(AskView())
        for _ in range(5):
            await asyncio.sleep(0)
        child = await open_child_end(theirs, lambda message: had.append(child is not None), closed.append)
        await until(lambda: bool(had))
        assert had == [True]
        child.close()
        await until(lambda: len(closed) == 2)

    asyncio.run(run())


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


def written(messages: list[Up]) -> bytes:
    wire = Wire()
    channel: ChildEnd = Channel(Down, lambda message: None, lambda error: None)
    channel.connection_made(wire)
    for message in messages:
        channel.send(message)
    return wire.written


@given(st.lists(st.integers(1, 200), max_size=40))
def test_frames_split_anywhere_give_the_same_messages(sizes: list[int]) -> None:
    data = written(UP)
    received: list[Up] = []
    channel: ParentEnd = Channel(Up, received.append, lambda error: None)
    channel.connection_made(Wire())
    channel.listen()
    for size in sizes:
        channel.data_received(data[:size])
        data = data[size:]
    channel.data_received(data)
    assert received == UP


@pytest.mark.parametrize(
    "data",
    [(LARGEST_FRAME_BYTES + 1).to_bytes(4), (5).to_bytes(4) + b"hello", (1).to_bytes(4) + b"\xc1"],
    ids=["too long", "no message", "no MessagePack"],
)
def test_bytes_that_are_no_message_end_the_channel_with_the_reason(data: bytes) -> None:
    closed: list[Exception | None] = []
    wire = Wire()
    received: list[Up] = []
    channel: ParentEnd = Channel(Up, received.append, closed.append)
    channel.connection_made(wire)
    channel.listen()
    channel.data_received(data)
    assert wire.is_aborted
    channel.connection_lost(None)
    assert isinstance(closed[0], ProtocolError)
    assert received == []


def test_closing_one_end_tells_the_other_and_later_sends_report_failure() -> None:
    async def body(pair: Pair) -> None:
        pair.child.close()
        await until(lambda: len(pair.closed) == 2)
        assert sorted(name for name, _ in pair.closed) == ["child", "parent"]
        assert all(error is None for _, error in pair.closed)
        assert not pair.parent.send(AskView())
        assert not pair.child.is_open
        assert not pair.child.is_writable

    with_pair(body)


def test_a_reader_that_stands_still_makes_the_channel_unwritable_until_it_reads_again() -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        closed: list[Exception | None] = []
        channel: ParentEnd = await open_parent_end(ours, lambda message: None, closed.append)
        big = Apply({"text": "x" * 100_000})
        sent = 0
        read = 0
        while sent < 1000 and channel.is_writable:
            channel.send(big)
            sent += 1
        assert sent < 1000
        loop = asyncio.get_running_loop()
        await until(lambda: not channel.is_writable)
        while read < sent * 100_000 and not is_writable(channel):
            read += len(await loop.sock_recv(theirs, 65_536))
        assert is_writable(channel)
        channel.close()
        theirs.close()
        await until(lambda: len(closed) == 1)

    asyncio.run(run())
