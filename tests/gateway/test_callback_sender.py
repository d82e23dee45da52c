"""Callbacks: signed so that others can verify them, tried again, and given up in the open."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from typing import Any

import pytest

from tidegate.errors import ProtocolError
from tidegate.gateway import callback_sender
from tidegate.gateway.callback_sender import CallbackSender, signature
from tidegate.gateway.messages import CallBack
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.fetch import Reply, fetch

CALLBACK = CallBack("https://hooks.example/done", "job_1", b'{"type":"job.done"}')


class Receiver:
    """Answers as told, and keeps what came."""

    def __init__(self, *answers: int | Exception, takes_s: float = 0.0) -> None:
        self.answers = list(answers)
        self.takes_s = takes_s
        self.got: list[tuple[float, str, dict[str, Any]]] = []

    async def post(self, url: str, **rest: Any) -> Reply:
        self.got.append((asyncio.get_running_loop().time(), url, rest))
        await asyncio.sleep(self.takes_s)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, {}, b"")


def sent(receiver: Receiver, secret: str | None = None) -> list[str]:
    """What was logged."""
    said: list[str] = []

    async def main() -> None:
        sender = CallbackSender(lambda level, text: said.append(f"{level}: {text}"), receiver.post)
        sender.secret = secret
        sender.send(CALLBACK)
        await sender.stop(60.0)

    run_virtually(main())
    return said


def test_a_callback_is_posted_with_the_headers_of_standard_webhooks() -> None:
    receiver = Receiver(200)
    assert sent(receiver, "secret") == []
    [(_, url, rest)] = receiver.got
    assert (url, rest["method"], rest["body"]) == (CALLBACK.url, "POST", CALLBACK.body)
    headers = rest["headers"]
    assert (headers["webhook-id"], headers["content-type"]) == ("job_1", "application/json")
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    signed = f"job_1.{headers['webhook-timestamp']}.".encode() + CALLBACK.body
    mac = base64.b64encode(hmac.new(b"secret", signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"


def test_a_secret_of_the_standard_is_base64_and_without_one_nothing_is_signed() -> None:
    plain = signature("key", "m", 1, b"x")
    assert signature("whsec_" + base64.b64encode(b"key").decode(), "m", 1, b"x") == plain
    receiver = Receiver(204)
    assert sent(receiver) == []
    assert "webhook-signature" not in receiver.got[0][2]["headers"]


def test_it_is_tried_three_times_with_growing_pauses_and_then_given_up_in_the_log() -> None:
    receiver = Receiver(500, ConnectionRefusedError("no"), ProtocolError("nonsense", 502))
    [line] = sent(receiver)
    assert line == "error: callback of job_1 failed 3 times: ProtocolError: nonsense"
    began = receiver.got[0][0]
    assert [at - began for at, _, _ in receiver.got] == pytest.approx([0.0, 2.0, 10.0], abs=0.1)


def test_it_arrives_at_the_second_try_and_a_redirect_is_none() -> None:
    receiver = Receiver(302, 200)
    assert sent(receiver) == []
    assert len(receiver.got) == 2


def test_a_secret_that_is_no_base64_is_said() -> None:
    [line] = sent(Receiver(), "whsec_!")
    assert "failed 3 times: Error: " in line


def test_the_number_under_way_is_bounded_and_the_end_of_the_service_says_what_it_drops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callback_sender, "MOST_PENDING", 1)
    said: list[str] = []

    async def main() -> None:
        receiver = Receiver(200, takes_s=50.0)
        sender = CallbackSender(lambda level, text: said.append(f"{level}: {text}"), receiver.post)
        await sender.stop(1.0)
        sender.send(CALLBACK)
        sender.send(CALLBACK)
        await sender.stop(1.0)

    run_virtually(main())
    assert said == [
        "error: callback of job_1 is dropped: 1 others are under way",
        "error: 1 callbacks are dropped, because the service ends",
    ]


def test_it_speaks_http_by_itself() -> None:
    async def main() -> bytes:
        received = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            received.set_result(head + await reader.readexactly(len(CALLBACK.body)))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        sender = CallbackSender(lambda level, text: None, fetch)
        sender.send(CallBack(f"http://127.0.0.1:{port}/hook", "job_2", CALLBACK.body))
        await sender.stop(5.0)
        server.close()
        got: bytes = await received
        return got

    got = asyncio.run(main())
    assert got.startswith(b"POST /hook HTTP/1.1\r\n")
    assert got.endswith(CALLBACK.body)
