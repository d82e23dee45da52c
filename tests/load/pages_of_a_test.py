"""A server of fixed pages, as engines and admin ports have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

VLLM_PAGE = (
    "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n"
    "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 2\n"
    "# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total 7\n"
)
MODELS = '{"data": [{"id": "m"}]}'
GATEWAY_PAGE = (
    '# TYPE tidegate_queue_requests gauge\ntidegate_queue_requests{upstream="a"} 4\n'
    '# TYPE tidegate_slots_used gauge\ntidegate_slots_used{replica="a"} 5\ntidegate_slots_used{replica="b"} 6\n'
)


@asynccontextmanager
async def pages(by_path: Mapping[str, str]) -> AsyncIterator[str]:
    """Its URL. A path that is not there is a 404, a page that begins with ``!`` a 503."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        body = by_path.get(path, "nothing there").encode()
        status = "404 Not Found" if path not in by_path else "503 Busy" if body.startswith(b"!") else "200 OK"
        length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{length}".encode() + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
