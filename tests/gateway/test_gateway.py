"""What a client gets for what it asks: answers, streams, models, health."""

from __future__ import annotations

import json

from tests.gateway.stand import WHOLE, Engine, chat, get, post, stand_for, stream_of
from tidegate.testing.virtual_loop import run_virtually


def test_a_whole_answer_comes_back_with_its_body_unchanged_and_our_headers() -> None:
    async def main() -> None:
        engine = Engine([0.2, WHOLE])
        with stand_for(engine) as stand:
            got = await stand.ask(post(chat(), headers="x-request-id: mine\r\n"))
            assert got.status == 200
            assert got.body == WHOLE.partition(b"\r\n\r\n")[2]
            assert got.headers[b"x-request-id"] == b"mine"
            assert got.headers[b"x-tidegate-replica"] == b"r1"
            assert b"x-tidegate-queue-ms" not in got.headers
            row = stand.rows[0]
            assert (row.status, row.prompt_tokens, row.output_tokens) == (200, 7, 3)
            assert stand.permits == 0

    run_virtually(main())
