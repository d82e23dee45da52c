"""A server on loopback that answers with recorded pages, and with nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.engines.address import Address

RECORDED = Path(__file__).parent / "recorded"

Page = tuple[int, bytes]
Answers = Page | Callable[[bytes], Page]


def recorded(name: str) -> Page:
    return 200, (RECORDED / name).read_bytes()


VLLM: dict[str, Answers] = {
    "/health": (200, b""),
    "/metrics": recorded("vllm_metrics.txt"),
    "/v1/models": recorded("vllm_models.json"),
}
"""vLLM 0.32 on CPU: --max-model-len 2048, one GiB of KV; three requests run, two wait."""

LLAMACPP: dict[str, Answers] = {
    "/health": (200, b'{"status":"ok"}'),
    "/metrics": recorded("llamacpp_metrics.txt"),
    "/slots": recorded("llamacpp_slots.json"),
    "/props": recorded("llamacpp_props.json"),
    "/v1/models": recorded("llamacpp_models.json"),
}
"""xllamacpp 2026.10.11549: four slots of 2048 tokens, six requests at once."""


@dataclass
class Pages:
    """``answers`` by path; what isn't there is a 404. ``asked`` are the paths so far, ``heads`` what came with them."""

    answers: dict[str, Answers]
    asked: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    url: str = ""
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def address(self) -> Address:
        return Address(url=self.url)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ", 2)[1]
        self.asked.append(path)
        self.heads.append(head)
        length = [int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:")]
        body = await reader.readexactly(length[0]) if length else b""
        answer = self.answers.get(path, (404, b'{"error":{"message":"File Not Found"}}'))
        status, content = answer if isinstance(answer, tuple) else answer(body)
        writer.write(b"HTTP/1.1 %d x\r\ncontent-length: %d\r\n\r\n" % (status, len(content)) + content)
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def serving(answers: dict[str, Answers], **changed: Answers | None) -> AsyncIterator[Pages]:
    """``changed``: other pages, by path without its slash; None takes a page away."""
    pages = Pages(dict(answers))
    for name, page in changed.items():
        path = "/" + name.replace("__", "/")
        pages.answers.pop(path, None)
        if page is not None:
            pages.answers[path] = page
    server = await asyncio.start_server(pages.accept, "127.0.0.1", 0)
    pages.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield pages
    finally:
        await asyncio.gather(*pages.serving)
        server.close()
