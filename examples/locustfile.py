"""Streaming chat under locust, with the time to the first token measured where it is: at the first part of the answer.

    pip install locust
    TIDEGATE_MODEL=smollm2 locust -f locustfile.py --headless -u 50 -r 10 -t 5m --host http://127.0.0.1:8000

The usual way is wrong for LLMs. ``client.post`` returns once the head of the answer is there: a gateway sends that
when it accepts the request, long before a token. And ``iter_lines`` of the fast client reads in pieces of 1 024
bytes, so that the first line comes when some forty tokens have come. Here the connection is read as bytes arrive, and
the clock stops at the first event whose delta has content, reasoning or a tool call; a first event with a role alone
is none.

Three rows come out for each request: ``TTFT``, ``TPOT`` (by the engine's own token count) and ``E2E``. A refusal for
load (429, 503) is a row of its own, named ``shed``: it is no failure of the engine and no success. Users here form a
closed loop: a service that hangs is asked no more. `tidegate load` sends open loops, from when each request was due.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from locust import User, between, task

MODEL = os.environ.get("TIDEGATE_MODEL", "smollm2")
KEY = os.environ.get("TIDEGATE_KEY", "")
HEADERS = {"content-type": "application/json", **({"authorization": f"Bearer {KEY}"} if KEY else {})}
PATIENCE_S = 60.0
SHED = (429, 503, 529)
TOPICS = ("tides", "bridges", "bread", "glass", "clouds", "maps", "clocks", "harbours")


class ChatUser(User):
    """One person: asks, reads the answer to its end, thinks, asks again."""

    wait_time = between(1, 5)

    @task
    def ask(self) -> None:
        """One request on a connection of its own."""
        began = time.perf_counter()
        try:
            with closing(connection_to(self.host)) as connection:
                connection.request("POST", "/v1/chat/completions", json.dumps(body()), HEADERS)
                self._judge(connection.getresponse(), began)
        except (OSError, HTTPException, ValueError) as error:
            self._tell("E2E", began, time.perf_counter(), error)

    def _judge(self, answer: HTTPResponse, began: float) -> None:
        if answer.status in SHED:
            self._tell("shed", began, time.perf_counter())
        elif answer.status != 200:
            raise HTTPException(f"status {answer.status}: {answer.read(200)!r}")
        else:
            self._read(answer, began)

    def _read(self, answer: HTTPResponse, began: float) -> None:
        first = last = 0.0
        tokens, is_whole = 0, False
        for data in events(answer):
            if data == b"[DONE]":
                is_whole = True
                break
            event = json.loads(data)
            if "error" in event:
                raise HTTPException(str(event["error"]))
            tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
            if has_content(event):
                last = time.perf_counter()
                first = first or last
        if not is_whole or not first:
            raise HTTPException("the stream ended before the answer did" if first else "an empty answer")
        self._tell("TTFT", began, first)
        if tokens > 1:
            self._tell("TPOT", 0.0, (last - first) / (tokens - 1))
        self._tell("E2E", began, time.perf_counter())

    def _tell(self, name: str, began: float, ended: float, error: Exception | None = None) -> None:
        self.environment.events.request.fire(
            request_type="chat",
            name=name,
            response_time=1000 * (ended - began),
            response_length=0,
            exception=error,
            context={},
        )


def connection_to(host: str) -> HTTPConnection:
    parts = urlsplit(host)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=PATIENCE_S)


def body() -> dict[str, Any]:
    """The nonce stands at the beginning, so that no prefix cache answers for the engine."""
    question = f"[{uuid.uuid4().hex}] Tell me about {random.choice(TOPICS)}."  # noqa: S311 - a topic, not a secret
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 128,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def events(answer: HTTPResponse) -> Iterator[bytes]:
    """The data of each event, as soon as its bytes are there."""
    rest = b""
    while piece := answer.read1(65536):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line[5:].strip() for line in lines if line.startswith(b"data:"))


def has_content(event: dict[str, Any]) -> bool:
    """A part of the answer: text, reasoning or a tool call."""
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    return any(delta.get(name) for name in ("content", "reasoning_content", "reasoning", "tool_calls"))
