"""A steady open-loop load of short answers, and what each client saw of its own."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tidegate.errors import ProtocolError
from tidegate.wire.responses import ResponseReader

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
REFUSED = frozenset({"queue_full", "queue_tokens", "queue_bytes", "queue_timeout", "deadline_unreachable", "quota"})
"""Codes of refusals for load: come back later."""
LATE_S = 1.0
"""An answer whose first byte took longer counts as late."""


@dataclass(slots=True)
class Load:
    """``rate`` requests a second, evenly spaced, whether or not answers come; ``streams``: share of them."""

    rate: float = 30.0
    tokens: int = 10
    streams: float = 0.75
    seed: int = 7
    path: str = CHAT
    gives_up_s: float = 40.0
    """A client that has no end by then counts as unanswered."""
    is_text_known: bool = True
    """The text is the one of ``faulty_upstream``, of which no word may be missing or twice."""


@dataclass(slots=True)
class Seen:
    """One request as its client saw it. Times: the machine's monotonic clock, seconds."""

    request_id: str
    streaming: bool
    sent_at: float
    first_at: float = 0.0
    """First byte of the body; 0.0: none."""
    ended_at: float = 0.0
    status: int = 0
    code: str = ""
    end: str = "unanswered"
    """``ok``, ``late``, ``degraded``, ``shed``, ``error`` (a typed one), ``broken`` (an answer that is cut, garbled or
    with words missing, and no error said so) or ``unanswered``."""
    replica: str = ""


async def play(url: str, load: Load, for_s: float, prefix: str) -> list[Seen]:
    """Send the load for so long, wait for every end, and tell."""
    dice = random.Random(load.seed)
    began = time.monotonic()
    tasks = []
    for number in range(int(load.rate * for_s)):
        due_at = began + number / load.rate
        await asyncio.sleep(max(0.0, due_at - time.monotonic()))
        seen = Seen(f"{prefix}-{number}", dice.random() < load.streams, time.monotonic())
        tasks.append(asyncio.create_task(ask(url, load, seen)))
    return list(await asyncio.gather(*tasks))


async def ask(url: str, load: Load, seen: Seen) -> Seen:
    """One request on a connection of its own."""
    try:
        async with asyncio.timeout(load.gives_up_s):
            await _exchange(url, load, seen)
    except (TimeoutError, OSError, ProtocolError) as error:
        seen.code = seen.code or type(error).__name__
        seen.end = "broken" if seen.status else "unanswered"
    seen.ended_at = time.monotonic()
    return seen


async def _exchange(url: str, load: Load, seen: Seen) -> None:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(request_bytes(parts.netloc, load, seen))
        answer, body = ResponseReader(), bytearray()
        while not answer.is_complete:
            data = await reader.read(1 << 16)
            if not data:
                answer.finish()
                break
            answer.feed(data)
            seen.status = answer.status
            if answer.pieces and not seen.first_at:
                seen.first_at = time.monotonic()
            body += b"".join(answer.pieces)
            answer.pieces.clear()
        judge(load, seen, answer, bytes(body))
    finally:
        writer.close()


def request_bytes(host: str, load: Load, seen: Seen) -> bytes:
    text = f"Request {seen.request_id}: say something, please."
    prompt = {"messages": [{"role": "user", "content": text}]} if load.path == CHAT else {"prompt": text}
    fields = {"model": "m", "max_tokens": load.tokens, "stream": seen.streaming, "temperature": 0}
    body = json.dumps({**fields, **prompt}).encode()
    head = f"POST {load.path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}x-request-id: {seen.request_id}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def judge(load: Load, seen: Seen, answer: ResponseReader, body: bytes) -> None:
    """Which end this answer is."""
    if not answer.has_head:
        return
    headers = dict(answer.headers)
    seen.replica = headers.get(b"x-tidegate-replica", b"").decode()
    is_events = headers.get(b"content-type", b"").startswith(b"text/event-stream")
    error, is_fine = (_events if is_events else _whole)(load, body)
    if error is not None:
        seen.code = str(error.get("code"))
        seen.end = "shed" if seen.code in REFUSED else "error"
    elif not answer.is_complete or not is_fine or seen.status != 200:
        seen.end = "broken"
    elif b"x-tidegate-degraded" in headers:
        seen.end, seen.code = "degraded", headers[b"x-tidegate-degraded"].decode()
    else:
        seen.end = "late" if seen.streaming and seen.first_at - seen.sent_at > LATE_S else "ok"


def _whole(load: Load, body: bytes) -> tuple[dict[str, Any] | None, bool]:
    try:
        found = json.loads(body)
        if isinstance(found.get("error"), dict):
            return found["error"], False
        return None, _is_right(load, _text(found["choices"][0]))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None, False


def _events(load: Load, body: bytes) -> tuple[dict[str, Any] | None, bool]:
    text, is_done = "", False
    try:
        for event in body.decode().split("\n\n"):
            data = event.partition("data:")[2].strip()
            if data == "[DONE]":
                is_done = True
            elif data:
                found = json.loads(data)
                if isinstance(found.get("error"), dict):
                    return found["error"], False
                text += "".join(_text(choice) for choice in found["choices"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, False
    return None, is_done and _is_right(load, text)


def _text(choice: dict[str, Any]) -> str:
    """Of a completion, of a chat's answer, of one of its events."""
    message = choice.get("message", choice.get("delta"))
    return str(choice["text"] if message is None else message.get("content") or "")


def _is_right(load: Load, text: str) -> bool:
    return not load.is_text_known or text == "".join(f"w{number} " for number in range(load.tokens))
