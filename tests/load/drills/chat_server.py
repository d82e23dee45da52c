"""A small chat server in the test's own loop, which a drill may break."""

from __future__ import annotations

import asyncio
import json

import httptools

HEAD = b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\nx-tidegate-replica: %b\r\ncontent-length: %d\r\n\r\n%b"
WHOLE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3},
}
EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":" there."},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


class ChatServer:
    """``is_broken``: it answers 500."""

    def __init__(self) -> None:
        self.is_broken = False
        self.asked = 0
        self.url = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> ChatServer:
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    def answer(self, body: bytes) -> bytes:
        self.asked += 1
        if self.is_broken:
            error = b'{"error":{"message":"broken","code":"engine_error"}}'
            return HEAD % (500, b"Error", b"application/json", b"a", len(error), error)
        if json.loads(body or b"{}").get("stream"):
            return HEAD % (200, b"OK", b"text/event-stream", b"a", len(EVENTS), EVENTS)
        whole = json.dumps(WHOLE).encode()
        return HEAD % (200, b"OK", b"application/json", b"a", len(whole), whole)


class _Connection(asyncio.Protocol):
    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        if self._transport is not None:
            self._transport.write(self._server.answer(body))
