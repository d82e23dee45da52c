"""Answers that no honest engine gives, by a seed: HTTP that is wrong, events that are wrong, errors of any shape."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

from tests.fuzz.attack import Dice, cut, mutated

Step = bytes | float | str
"""Bytes to send, seconds to wait, ``close`` or ``abort``."""
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
END = b"0\r\n\r\n"
TEXT = json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})


def steps(seed: int) -> list[Step]:
    """What one request is answered; the connection may be kept, closed or aborted afterwards."""
    dice = Dice(seed)
    data = dice.choice(WAYS)(dice)
    if dice.random() < 0.2:
        data = mutated(dice, data)
    found: list[Step] = [*cut(dice, data)]
    if dice.random() < 0.2:
        found.insert(dice.randrange(len(found) + 1), dice.choice([0.01, 0.3, 3.0]))
    return [*found, *dice.choices([[], ["close"], ["abort"]], [30, 55, 15])[0]]


def _whole(status: bytes, body: bytes, lines: bytes = b"", content_type: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: %b\r\n%bcontent-length: %d\r\n\r\n"
    return head % (status, content_type, lines, len(body)) + body


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _starts(dice: Dice) -> bytes:
    line = dice.choice(
        [
            b"HTTP/1.1 99 Low",
            b"HTTP/1.1 600 High",
            b"HTTP/1.1 999 ",
            b"HTTP/1.1 000 Zero",
            b"HTTP/1.1 2000 Long",
            b"HTTP/2 200",
            b"HTTP/0.9 200 OK",
            b"HTTP/1.1 200",
            b"HTTP/1.1  200 OK",
            b"http/1.1 200 OK",
            b"ICY 200 OK",
            b"HTTP/1.1 200 \xff\x00",
            b"HTTP/1.1 204 No Content",
            b"HTTP/1.1 304 Not Modified",
            b"HTTP/1.1 205 Reset",
            b"HTTP/1.1 302 Found\r\nlocation: http://evil/",
            b"HTTP/1.1 418 Teapot",
            b"HTTP/1.0 200 OK",
            b"",
            b"\x00",
        ]
    )
    return line + b"\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(TEXT), TEXT.encode())


def _lengths(dice: Dice) -> bytes:
    size = len(TEXT)
    lines = dice.choice(
        [
            b"content-length: %d\r\n" % (size + dice.choice([-5, 5, 100000])),
            b"content-length: -1\r\n",
            b"",
            b"content-length: %d\r\ncontent-length: %d\r\n" % (size, size + 1),
            b"content-length: 99999999999999999999\r\n",
            b"content-length: %d\r\ntransfer-encoding: chunked\r\n" % size,
            b"transfer-encoding: gzip\r\n",
            b"transfer-encoding: gzip, chunked\r\n",
            b"content-length:\r\n",
            b"content-length: %d, %d\r\n" % (size, size),
        ]
    )
    kind = dice.choice([b"application/json", b"text/event-stream", b"text/plain"])
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n%b" % (kind, lines, TEXT.encode())


def _interim(dice: Dice) -> bytes:
    line = dice.choice(
        [b"100 Continue", b"102 Processing", b"103 Early Hints\r\nlink: </x>", b"101 Switching Protocols"]
    )
    return (b"HTTP/1.1 %b\r\n\r\n" % line) * dice.choice([1, 3, 3000]) + _whole(b"200 OK", TEXT.encode())


def _chunks(dice: Dice) -> bytes:
    return STREAM + dice.choice(
        [
            b"zz\r\n%b\r\n" % EVENT,
            b"-5\r\n%b\r\n" % EVENT,
            b"%x;%b\r\n%b\r\n" % (len(EVENT), b"e" * 100000, EVENT),
            _chunk(EVENT) * 3,
            _chunk(EVENT) + b"0\r\nx-trailer: y\r\n\r\n",
            _chunk(EVENT) + b"0\r\n%b" % (b"t: x\r\n" * 9000),
            b"ffffffffffffffffff\r\n" + EVENT,
            _chunk(EVENT) + END + b"extra",
            _chunk(EVENT) + END + _whole(b"200 OK", b"{}"),
            b"".join(b"1\r\n%c\r\n" % byte for byte in EVENT) + END,
            _chunk(EVENT)[:-1],
            b"\r\n\r\n",
            END,
        ]
    )


def _events(dice: Dice) -> bytes:
    odd = dice.choice(
        [
            b"data: {\n\n",
            b"data: \xff\xfe\x00\n\n",
            b"data:\n\n",
            b": only a comment\n\n" * dice.choice([1, 500]),
            b"\n\n\n\n",
            b'data: {"error":"text"}\n\n',
            b'data: {"error":null}\n\n',
            b'data: {"error":{}}\n\n',
            b'data: {"error":[1]}\n\n',
            b'data: {"error":{"message":"broke"}}\n\n' + EVENT + DONE,
            b"event: error\ndata: x\n\n",
            b"\xef\xbb\xbf" + EVENT,
            EVENT.replace(b"\n", b"\r\n"),
            EVENT.replace(b"\n", b"\r"),
            b"data: " + b"x" * 300000,
            b"id: 1\nretry: 1\n" + EVENT,
            b'data: {"usage":{"prompt_tokens":-5,"completion_tokens":"x"}}\n\n',
            b'data: {"usage":null}\n\n',
            EVENT * 500,
            b'data: {"usage":{"prompt_tokens":%b,"completion_tokens":1e99}}\n\n' % (b"9" * 400),
            DONE + EVENT,
            DONE + DONE,
        ]
    )
    parts = [EVENT, odd, *([DONE] if dice.random() < 0.6 else [])]
    data = b"".join(parts)
    body = b"".join(map(_chunk, cut(dice, data) if dice.random() < 0.5 else parts))
    return STREAM + body + (END if dice.random() < 0.7 else b"")


def _errors(dice: Dice) -> bytes:
    status = dice.choice(
        [b"400 Bad", b"401 No", b"403 No", b"404 No", b"422 No", b"429 Busy", b"500 Broken", b"502 Bad"]
    )
    status = dice.choice([status, b"503 Busy", b"529 Busy", b"504 Late", b"451 Law", b"499 Left"])
    body = dice.choice(
        [
            b"",
            b"<html>busy</html>",
            b"\xff\xfe",
            b"null",
            b"[]",
            b'"x"',
            b"{}",
            b'{"error":"text"}',
            b'{"error":null}',
            b"{",
            b'{"error":{}}',
            b'{"error":{"message":null}}',
            b'{"error":{"message":5,"type":[]}}',
            b'{"message":["a"]}',
            b'{"error":{"message":"\\ud800"}}',
            b'{"detail":[{"msg":"x"}]}',
            b'{"error":{"message":"fine","code":"x"}}',
            b"[" * 3000,
            b'{"error":%b1%b}' % (b'{"a":' * 1100, b"}" * 1100),
            b"x" * 300000,
            b'{"error":{"message":"busy"}}',
            b'{"message":"loading"}',
            b'{"object":"error","message":"x","code":400}',
            b"\x00" * 10,
            b'{"error":{"message":""}}',
        ]
    )
    kind = dice.choice([b"application/json", b"text/html", b"text/event-stream", b"text/plain", b""])
    again = dice.choice(
        [b"", b"retry-after: 5\r\n", b"retry-after: never\r\n", b"retry-after-ms: -1\r\n", b"retry-after:\r\n"]
    )
    return _whole(status, body, again, kind)


def _headers(dice: Dice) -> bytes:
    lines = dice.choice(
        [
            b"x-a: b\r\n c\r\n",
            b"x a: b\r\n",
            b"x-a: \x00\r\n",
            b"x-a: \xff\r\n",
            b": b\r\n",
            b"x-a\r\n",
            b"x-a : b\r\n",
            b"x-a: b\n",
            b"x-request-id: theirs\r\n" * 2,
            b"x-tidegate-replica: evil\r\n",
            b"set-cookie: a=b\r\n" * 3,
            b"x-a: b\rc\r\n",
            b"connection: close\r\n",
            b"connection: upgrade\r\nupgrade: h2c\r\n",
            b"connection: x-a\r\nx-a: b\r\n",
            b"server: x\r\n",
            b"content-type: text/html\r\n",
            b"x-a: %b\r\n" % (b"a" * 300000),
            b"x-a: b\r\n" * 9000,
            b"keep-alive: timeout=0\r\n",
            b"content-encoding: gzip\r\n",
            b"content-encoding: br\r\n",
            b"trailer: x\r\n",
            b"x-should-retry: maybe\r\n",
        ]
    )
    return _whole(b"200 OK", TEXT.encode(), lines)


def _bodies(dice: Dice) -> bytes:
    body = dice.choice(
        [
            b"",
            b"null",
            b"{",
            b"\xff\xfe",
            TEXT.encode() * 2,
            gzip.compress(TEXT.encode()),
            b"[" * 3000,
            b"x" * 1500000,
            b'{"usage":{"prompt_tokens":-1}}',
            b'{"usage":{"prompt_tokens":%b}}' % (b"9" * 500),
            b'{"usage":"x"}',
            b"\x00",
        ]
    )
    kind = dice.choice(
        [b"application/json", b"application/json; charset=utf-16", b"text/plain", b"text/event-stream", b""]
    )
    return _whole(b"200 OK", body, b"content-encoding: gzip\r\n" if body[:2] == b"\x1f\x8b" else b"", kind)


def _noise(dice: Dice) -> bytes:
    return dice.choice(
        [dice.randbytes(dice.choice([1, 50, 5000])), b"\r\n" * 50, b"HTTP/1.1 200 OK\r\n", b"nothing", b"\n"]
    )


def _right(dice: Dice) -> bytes:
    stream = STREAM + _chunk(EVENT) * dice.randint(1, 5) + _chunk(DONE) + END
    return dice.choice([stream, _whole(b"200 OK", TEXT.encode())])


WAYS: tuple[Callable[[Dice], bytes], ...] = (
    _starts,
    _lengths,
    _interim,
    _chunks,
    _events,
    _events,
    _errors,
    _errors,
    _headers,
    _bodies,
    _noise,
    _right,
)
