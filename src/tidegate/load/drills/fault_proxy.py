"""A TCP proxy that misbehaves on command, between any two that talk HTTP.

In a drill it runs in the drill's own loop; it is also a process of its own:

    python -m tidegate.load.drills.fault_proxy --to URL [--port 0] [--seed 0] [--packets]

That prints one line of JSON, ``{"url": …, "control": …, "level": …}``, and passes everything on until it is ended. Its
control port takes

    PUT /impairment  {"delay_s": 0.02, "jitter_s": 0.01, …}    see ``Impairment``; what is left out is 0
    GET /log                                                  every request that reached the server whole
    GET /state                                                connections, resets, packets

With ``--packets`` it stands on a second host behind a real link (``second_host``), and delay, jitter, loss and
bandwidth happen to its packets. Where that may not be made it works on the streams, and ``level`` says ``streams``:
a loss is then imitated by the delay of a retransmission. Times are the machine's monotonic clock.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections import Counter
from urllib.parse import urlsplit

import msgspec

from tidegate.errors import ProtocolError
from tidegate.load.drills.impairment import NOTHING, Cut, Impairment, Pages
from tidegate.load.drills.packet_link import PacketLink
from tidegate.load.drills.passage import Ends, Line, Passage
from tidegate.load.drills.second_host import second_host
from tidegate.load.drills.wiretap import Ledger, Wiretap
from tidegate.wire.requests import Incoming, RequestReader


class FaultProxy:
    """Use inside a running loop."""

    def __init__(self, to: str, seed: int = 0, *, wants_packets: bool = False) -> None:
        """``to``: the server's URL; its path, if it has one, is the proxy's too."""
        self._to = urlsplit(to)
        self._seed = seed
        self._wants_packets = wants_packets
        self._link: PacketLink | None = None
        self._line = Line(seed)
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.ledger = Ledger()
        self.accepted = 0
        self.url = ""

    @property
    def level(self) -> str:
        """``packets``: of a real link, in a network namespace; ``streams``: of what passes a proxy."""
        return "streams" if self._link is None else "packets"

    @property
    def answered(self) -> Counter[str]:
        """Whole answers that the server wrote to POSTs, by ``x-request-id``."""
        return self.ledger.answered

    @property
    def resets(self) -> int:
        """Connections that it has reset, as it was told."""
        return self._line.resets

    async def start(self, port: int = 0) -> None:
        """Take connections at ``url``."""
        if self._wants_packets:
            with contextlib.suppress(OSError):
                host = second_host()
                self._link = PacketLink(host.near.descriptor, host.far.descriptor, self._seed)
                self._line.loses_packets = True
                self._server = await asyncio.start_server(self._accept, sock=host.listening)
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        address, bound = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://{address}:{bound}{self._to.path}"

    async def close(self) -> None:
        """End everything that it carries."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._link is not None:
            self._link.close()

    def impair(self, impairment: Impairment) -> None:
        """From here on, also for the connections that are open."""
        self._line.take(impairment)
        if self._link is not None:
            self._link.impairment = impairment

    def heal(self) -> None:
        self.impair(NOTHING)

    def state(self) -> dict[str, object]:
        """For people, and for the control port."""
        shown: dict[str, object] = {
            "impairment": msgspec.to_builtins(self._line.impairment),
            "accepted": self.accepted,
            "open": len(self._running),
            "resets": self.resets,
        }
        if self._link is not None:
            shown |= {"packets_passed": self._link.passed, "packets_lost": self._link.lost}
        return shown

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.get_running_loop().create_task(self._pass(Ends(reader, writer)))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _pass(self, client: Ends) -> None:
        try:
            if self._line.impairment.cut is Cut.BLACK_HOLE:
                await swallow(client)
                return
            if self._line.impairment.pages is not Pages.FRESH:
                client.opening = await client.read()
                if client.opening.startswith(b"GET ") and await told(client, self._line.impairment.pages, self.ledger):
                    return
            try:
                server = Ends(*await asyncio.open_connection(self._to.hostname, self._to.port))
            except OSError:
                client.reset()
                return
            await Passage(self._line, client, server, Wiretap(self.ledger)).run()
        finally:
            client.close()


async def told(client: Ends, pages: Pages, ledger: Ledger) -> bool:
    """Answer a page that is not to be fresh, and nothing after it; False: it is passed on all the same."""
    target = client.opening.split(b" ", 2)[1].decode("latin-1")
    known = ledger.pages.get(target)
    if pages is Pages.SILENT:
        await swallow(client)
    elif pages is Pages.FROZEN and known is not None:
        await answer(client, b"200 OK", known)
    elif pages is Pages.FAILING and target != "/health":
        await answer(client, b"503 Service Unavailable", b"{}")
    else:
        return False
    return True


async def answer(client: Ends, status: bytes, body: bytes) -> None:
    head = b"HTTP/1.1 %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    with contextlib.suppress(OSError):
        client.writer.write(head % (status, len(body)) + body)
        await client.writer.drain()


async def swallow(client: Ends) -> None:
    """Read until it leaves, and say nothing."""
    with contextlib.suppress(OSError):
        while await client.read():
            pass


def obey(proxy: FaultProxy, incoming: Incoming) -> tuple[int, bytes]:
    """One order at the control port: status and JSON."""
    match (incoming.method, incoming.target):
        case (b"GET", b"/log"):
            return 200, msgspec.json.encode(list(proxy.ledger.log))
        case (b"GET", b"/state"):
            return 200, msgspec.json.encode(proxy.state())
        case (b"PUT", b"/impairment"):
            try:
                proxy.impair(msgspec.json.decode(incoming.body, type=Impairment))
            except msgspec.DecodeError as error:
                return 400, json.dumps({"error": str(error)}).encode()
            return 200, msgspec.json.encode(proxy.state())
    return 404, b'{"error": "say PUT /impairment, GET /log or GET /state"}'


async def control(proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One caller of the control port."""
    requests = RequestReader(1 << 16, 1 << 20)
    try:
        while not requests.ready and (piece := await reader.read(1 << 16)):
            requests.feed(piece)
        if requests.ready:
            status, body = obey(proxy, requests.ready.popleft())
            writer.write(b"HTTP/1.1 %d -\r\ncontent-length: %d\r\n" % (status, len(body)))
            writer.write(b"connection: close\r\n\r\n" + body)
            await writer.drain()
    except (OSError, ProtocolError):
        return
    finally:
        requests.close()
        writer.close()


async def serve(proxy: FaultProxy, port: int) -> None:
    """Until it is ended."""
    await proxy.start(port)
    ordered = await asyncio.start_server(lambda reader, writer: control(proxy, reader, writer), "127.0.0.1", 0)
    where = f"http://127.0.0.1:{ordered.sockets[0].getsockname()[1]}"
    print(json.dumps({"url": proxy.url, "control": where, "level": proxy.level}), flush=True)  # noqa: T201 - its owner reads it
    try:
        await ordered.serve_forever()
    finally:
        await proxy.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="a TCP proxy that misbehaves on command")
    parser.add_argument("--to", required=True, metavar="URL")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packets", action="store_true")
    given = parser.parse_args()
    asyncio.run(serve(FaultProxy(given.to, given.seed, wants_packets=given.packets), given.port))


if __name__ == "__main__":
    main()
