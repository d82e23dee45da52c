"""A stream that ends, as HTTP, in the middle of an event was cut, and its client is told so."""

from __future__ import annotations

import pytest

from tests.gateway.stand import DONE, STREAM_END, STREAM_HEAD, Engine, Step, chat, chunk, event, post, stand_for
from tidegate.testing.virtual_loop import run_virtually

HALF = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5\r\n\r\ndata:"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([HALF], "cut"),
        ([STREAM_HEAD, chunk(event("a") + b"data: {"), STREAM_END], "cut"),
        ([STREAM_HEAD, chunk(event("a") + DONE.rstrip()), STREAM_END], ""),
        ([STREAM_HEAD, chunk(event("a")), STREAM_END], ""),
    ],
)
def test_half_an_event_is_no_clean_end(script: list[Step], code: str) -> None:
    async def main() -> None:
        with stand_for(Engine(script)) as stand:
            client = stand.client()
            client.send(post(chat(stream=True)))
            await stand.until(lambda: bool(client.answers))
            assert stand.rows[0].code == code
            assert (b'"code":"cut"' in client.answers[0].body) is bool(code)
            assert client.answers[0].body.endswith(b"\n\n") or not code

    run_virtually(main())
