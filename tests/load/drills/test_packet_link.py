"""The link between two hosts: its packets, without hosts."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tidegate.load.drills.fault_proxy import FaultProxy
from tidegate.load.drills.impairment import Impairment
from tidegate.load.drills.packet_link import PacketLink
from tidegate.load.drills.second_host import address_of, second_host


def linked(act: Callable[[PacketLink, socket.socket, socket.socket], Awaitable[None]]) -> None:
    """``act`` sends at either side; a datagram stands for a packet."""

    async def main() -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        link = PacketLink(pairs[0][1].detach(), pairs[1][1].detach(), 1)
        try:
            await act(link, pairs[0][0], pairs[1][0])
        finally:
            link.close()
            for ours, _ in pairs:
                ours.close()

    asyncio.run(main())


async def received(at: socket.socket) -> bytes:
    at.setblocking(False)
    return await asyncio.get_running_loop().sock_recv(at, 100)


def test_packets_go_both_ways_and_keep_their_borders() -> None:
    async def act(link: PacketLink, near: socket.socket, far: socket.socket) -> None:
        near.send(b"one")
        near.send(b"two")
        far.send(b"back")
        assert [await received(far), await received(far), await received(near)] == [b"one", b"two", b"back"]
        assert (link.passed, link.lost) == (3, 0)

    linked(act)


def test_a_delayed_packet_comes_later() -> None:
    async def act(link: PacketLink, near: socket.socket, far: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        link.impairment, began = Impairment(delay_s=0.03), loop.time()
        near.send(b"late")
        await received(far)
        assert loop.time() - began >= 0.03

    linked(act)


def test_a_lost_packet_is_counted_and_does_not_come() -> None:
    async def act(link: PacketLink, near: socket.socket, far: socket.socket) -> None:
        link.impairment = Impairment(loss_share=0.5)
        for number in range(40):
            near.send(b"%d" % number)
        while link.lost + link.passed < 40:
            far.setblocking(False)
            await received(far)
        assert 5 < link.lost < 35

    linked(act)


def test_a_packet_that_nobody_can_take_is_lost() -> None:
    async def act(link: PacketLink, near: socket.socket, far: socket.socket) -> None:
        far.close()
        near.send(b"one")
        back: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, back.set_result, None)
        await back
        assert (link.passed, link.lost) == (0, 1)

    linked(act)


def test_each_link_has_a_network_of_its_own() -> None:
    assert [address_of(number, 1) for number in (0, 1, 64)] == ["198.18.0.1", "198.18.0.5", "198.18.1.1"]
    assert address_of(16383, 2) == "198.18.255.254"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_without_the_right_to_make_devices_the_proxy_works_on_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_given: object) -> int:
        raise PermissionError("not yours")

    monkeypatch.setattr("fcntl.ioctl", refused)
    open_before = open_files()
    with pytest.raises(PermissionError):
        second_host()
    assert open_files() == open_before

    async def main() -> str:
        proxy = FaultProxy("http://127.0.0.1:1", wants_packets=True)
        await proxy.start()
        await proxy.close()
        return proxy.level

    assert asyncio.run(main()) == "streams"


def may_make_hosts() -> bool:
    try:
        host = second_host()
    except OSError:
        return False
    os.close(host.near.descriptor)
    os.close(host.far.descriptor)
    host.listening.close()
    return True


@pytest.mark.skipif(not may_make_hosts(), reason="needs Linux, /dev/net/tun and CAP_NET_ADMIN")
def test_a_connection_over_a_real_link_survives_the_loss_of_packets() -> None:
    async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    async def main() -> tuple[FaultProxy, bytes]:
        server = await asyncio.start_server(echoing, "127.0.0.1", 0)
        proxy = FaultProxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", 3, wants_packets=True)
        await proxy.start()
        proxy.impair(Impairment(delay_s=0.005, loss_share=0.02))
        address, _, port = proxy.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(address, int(port))
        writer.write(b"ping")
        answer = await reader.read()
        writer.close()
        await proxy.close()
        server.close()
        return proxy, answer

    proxy, answer = asyncio.run(main())
    assert answer == b"ping"
    assert proxy.level == "packets"
    assert proxy.url.startswith("http://198.18.")
