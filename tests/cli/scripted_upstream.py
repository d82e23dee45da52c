"""An OpenAI-compatible engine of a few lines, over real sockets, whose behaviour a test sets."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class ScriptedUpstream:
    """Answers /v1/models and /v1/chat/completions, streaming or not; closes each connection."""

    def __init__(self, words: tuple[str, ...] = ("Hello", " there")) -> None:
        self.words = words
        self.models: tuple[str, ...] = ("scripted",)
        self.props: dict[str, Any] | None = None
        """What /props says; an engine that has it is taken for a llama.cpp."""
        self.asked: list[dict[str, Any]] = []
        """Body of every completion request."""
        self.is_asked = asyncio.Event()
        """Set by the first of them."""
        self.hold = asyncio.Event()
        """While it is not set, an answer stops after its first word."""
        self.hold.set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> ScriptedUpstream:
        await self.listen(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def listen(self, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lengths = [line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
            body = await reader.readexactly(int(lengths[0])) if lengths else b""
            await self._answer(head.split(" ", 2)[1], body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the gateway left; what was asked is on record
        finally:
            writer.close()

    async def _answer(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path == "/v1/models":
            _write(writer, 200, {"object": "list", "data": [{"id": model} for model in self.models]})
        elif path == "/props" and self.props is not None:
            _write(writer, 200, self.props)
        elif path == "/v1/chat/completions":
            request = json.loads(body)
            self.asked.append(request)
            self.is_asked.set()
            await (self._stream(writer) if request.get("stream") else self._whole(writer))
        else:
            _write(writer, 404, {"error": {"message": "no", "type": "x", "param": None, "code": None}})
        await writer.drain()

    async def _whole(self, writer: asyncio.StreamWriter) -> None:
        await self.hold.wait()
        message = {"role": "assistant", "content": "".join(self.words)}
        usage = {"prompt_tokens": 5, "completion_tokens": len(self.words), "total_tokens": 5 + len(self.words)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        _write(writer, 200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for word in self.words:
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
            writer.write(b"data: " + json.dumps({"id": "x", "choices": [choice]}).encode() + b"\n\n")
            await writer.drain()
            await self.hold.wait()
        writer.write(b"data: [DONE]\n\n")


def _write(writer: asyncio.StreamWriter, status: int, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
