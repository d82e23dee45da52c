"""What looking into answers and requests costs: docs/policies/output.md and abnormal.md.

    python bench/output.py [--json]
    PYTHONPATH=build/compiled python bench/output.py

One process, no sockets. CPU time of the fastest of many short runs: anything else on the machine only ever adds. A
chunk is one read with one event, as vLLM sends them, of one token of about four characters.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from time import process_time_ns
from typing import Any, cast

from tidegate.gateway.relay import Relay
from tidegate.gateway.reply import Reply
from tidegate.gateway.screening import Screening
from tidegate.gateway.watching import Watch, whole_finding
from tidegate.policy.abnormal import InputConfig
from tidegate.policy.output.answer_check import Expected
from tidegate.policy.output.output_config import OutputConfig
from tidegate.wire.body import Body
from tidegate.wire.responses import ResponseReader

CHUNKS = 512
RUNS = 200
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USUAL = Expected(config=OutputConfig())
JSON_MODE = Expected(config=OutputConfig(), is_json=True)
WORDS = [f" w{n * 7919 % 997:x}" for n in range(CHUNKS)]
JSON_TEXT = json.dumps([{"id": n, "name": f"item {n}", "price": n * 1.5} for n in range(100)])

DEFINITIONS = {
    "plain": "ns a chunk that Relay.take takes, nobody watching; parsing its HTTP framing and the socket are not in it",
    "watched": "ns a chunk beside it for finding loops, garble, emptiness; a look every 32 reads",
    "watched_slow": "the same where chunks come every 30 ms, so that a look has about 8 reads",
    "json": "ns a chunk beside it where the request asks for JSON; a look every 32 reads",
    "ratio": "(plain + watched) / plain",
    "whole_short_us": "us of looking into a whole answer of 11 characters",
    "whole_300_us": "us of looking into a whole answer of 300 words",
    "screening_us": "us of looking into a chat request of 700 bytes",
    "screening_1mb_us": "us of looking into a chat request of 1 MB that repeats nothing",
}


class Nowhere:
    """A transport that swallows everything."""

    def write(self, data: bytes) -> None: ...


class Reads:
    """Stands for a reader that has just read one piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []


def event(text: str) -> bytes:
    """As vLLM 0.11 sends it."""
    chunk = {
        "id": "chatcmpl-0123456789abcdef0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1764500000,
        "model": "qwen2.5-7b-instruct",
        "choices": [{"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}],
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def fastest(run: Callable[[], int], runs: int = RUNS) -> float:
    """ns, as ``run`` measures itself."""
    return float(min(run() for _ in range(runs)))


def stream(events: list[bytes], expected: Expected | None, gap_s: float) -> float:
    """ns a chunk."""

    def run() -> int:
        now = [0.0]
        head = ResponseReader()
        head.feed(HEAD)
        relay = Relay(Reply(cast(Any, Nowhere()), False, True), head, b"", lambda: now[0])
        if expected is not None:
            relay.watch = Watch(expected, 0.0)
        reader, pieces = cast(ResponseReader, Reads()), [[each] for each in events]
        begun = process_time_ns()
        for each in pieces:
            now[0] += gap_s
            reader.pieces = each
            relay.take(reader)
        return process_time_ns() - begun

    return fastest(run) / len(events)


def once(work: Callable[[], object], times: int) -> float:
    """us of one."""

    def run() -> int:
        begun = process_time_ns()
        for _ in range(times):
            work()
        return process_time_ns() - begun

    return fastest(run) / times / 1000


def answer(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": {}}).encode()


def request(text: str) -> Body:
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": text}]
    return Body(json.dumps({"model": "m", "messages": messages, "max_tokens": 64, "temperature": 0.7}).encode())


def measure() -> dict[str, float]:
    prose = [event(word) for word in WORDS]
    structured = [event(JSON_TEXT[at : at + 4]) for at in range(0, len(JSON_TEXT), 4)]
    plain, plain_json = stream(prose, None, 0.001), stream(structured, None, 0.001)
    watched = stream(prose, USUAL, 0.001) - plain
    screening = Screening(InputConfig())
    short, long = request("".join(WORDS[:110])), request(" ".join(str(n) for n in range(160_000)))
    return {
        "plain": plain,
        "watched": watched,
        "watched_slow": stream(prose, USUAL, 0.03) - plain,
        "json": stream(structured, JSON_MODE, 0.001) - plain_json,
        "ratio": (plain + watched) / plain,
        "whole_short_us": once(lambda: whole_finding(USUAL, answer_short), 500),
        "whole_300_us": once(lambda: whole_finding(USUAL, answer_long), 50),
        "screening_us": once(lambda: screening.look(short), 500),
        "screening_1mb_us": once(lambda: screening.look(long), 2),
    }


answer_short, answer_long = answer("hello there"), answer("".join(WORDS[:300]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    figures = measure()
    if parser.parse_args().json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:>18}  {figure:10.2f}  {DEFINITIONS[name]}")


if __name__ == "__main__":
    main()
