"""HTTP that is wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.attack import CHAT, Attack, Dice, cut, mutated, right, said


def wrong_http(dice: Dice, model: str) -> Attack:
    body = said(model, stream=dice.random() < 0.3)
    name, data = dice.choice(HTTP)(dice, body)
    if dice.random() < 0.25:
        data = mutated(dice, data)
        name += "+mutated"
    if dice.random() < 0.15:
        # Behind or before a right request: what is wrong must not touch what is right.
        data = data + right(body) if dice.random() < 0.5 else right(body) + data
        name += "+pipelined"
    return Attack(name, cut(dice, data), dice.choices(["wait", "half", "close", "reset"], [70, 15, 10, 5])[0])


def _framed(lines: bytes, body: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\nhost: gate\r\n%b\r\n%b" % (CHAT, lines, body)


def _both_lengths(dice: Dice, body: bytes) -> tuple[str, bytes]:
    length = b"content-length: %d\r\n" % dice.choice([0, 1, len(body), len(body) + 50])
    chunked = b"transfer-encoding: %b\r\n" % dice.choice([b"chunked", b"Chunked", b" chunked ", b"chunked, chunked"])
    lines = [length, chunked]
    dice.shuffle(lines)
    return "both-lengths", _framed(b"".join(lines), b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


def _odd_length(dice: Dice, body: bytes) -> tuple[str, bytes]:
    size = len(body)
    value = dice.choice(
        [
            b"-1",
            b"+%d" % size,
            b"%dabc" % size,
            b"0x%x" % size,
            b"%d, %d" % (size, size),
            b"",
            b" ",
            b"1e3",
            b"9" * 40,
            b"%d" % (1 << 62),
            b"%d" % (1 << 64),
            b"%d" % (1 << 26),
            b"\xd9\xa3",
            b"%d\x00" % size,
            b"0%d" % size,
        ]
    )
    again = b"content-length: %d\r\n" % size if dice.random() < 0.3 else b""
    return "odd-length", _framed(b"content-length: %b\r\n%b" % (value, again), body)


def _odd_coding(dice: Dice, body: bytes) -> tuple[str, bytes]:
    coding = dice.choice(
        [
            b"xchunked",
            b"chunked, identity",
            b"gzip, chunked",
            b"identity",
            b"\x0bchunked",
            b"chunked\x00",
            b"",
            b"chunk",
            b"chunked;q=1",
            b'"chunked"',
            b"chunked\r\ntransfer-encoding: identity",
            b"CHUNKED",
        ]
    )
    return "odd-coding", _framed(b"transfer-encoding: %b\r\n" % coding, b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


def _bad_chunks(dice: Dice, body: bytes) -> tuple[str, bytes]:
    size = len(body)
    chunk = dice.choice(
        [
            b"%x\n%b\n0\n\n" % (size, body),
            b"-%x\r\n%b\r\n0\r\n\r\n" % (size, body),
            b"zz\r\n%b\r\n0\r\n\r\n" % body,
            b"%x\r\n%b0\r\n\r\n" % (size, body),
            b"%x\r\n%b\r\n0\r\n\r\n" % (size + 7, body),
            b"f" * 20 + b"\r\n" + body,
            b"%x;%b\r\n%b\r\n0\r\n\r\n" % (size, b"a" * dice.choice([10, 70000]), body),
            b" %x\r\n%b" % (size, body),
            b"%x\r\n%b\r\n0\r\n%b\r\n" % (size, body, b"x: y\r\n" * dice.choice([1, 5000])),
            b"\r\n\r\n",
            b"0\r\n",
            b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n",
            b"0x%x\r\n%b\r\n0\r\n\r\n" % (size, body),
            b"%x\r\n%b\r\n0\r\nhost: other\r\ncontent-length: 5\r\n\r\n" % (size, body),
            b"0\r\n\r\n",
        ]
    )
    return "bad-chunks", _framed(b"transfer-encoding: chunked\r\n", chunk)


def _bad_line(dice: Dice, body: bytes) -> tuple[str, bytes]:
    line = dice.choice(
        [
            b"x-a: b\r\n c\r\n",
            b"x-a : b\r\n",
            b": b\r\n",
            b"x-a\r\n",
            b"x a: b\r\n",
            b"x-a: b\x00c\r\n",
            b"x\x00a: b\r\n",
            b"x-a: b\n",
            b"x-a: b\r",
            b"x-a:\r\n",
            b"\r\n",
            b"\xff\xfe: b\r\n",
            b"x-a: \xff\xfe\r\n",
            b"x-a: b\rc\r\n",
            b"host: other\r\n",
            b"host:\r\n",
            b"Host: gate, gate\r\n",
            b"\tx-a: b\r\n",
            b"x-a: \x01\x02\x7f\r\n",
        ]
    )
    length = b"content-length: %d\r\n" % len(body)
    return "bad-line", _framed(line + length if dice.random() < 0.5 else length + line, body)


def _huge_head(dice: Dice, body: bytes) -> tuple[str, bytes]:
    lines = dice.choice(
        [
            b"x-a: %b\r\n" % (b"a" * dice.choice([60000, 70000, 200000])),
            b"x-a: b\r\n" * dice.choice([1000, 12000]),
            b"%b: b\r\n" % (b"n" * 70000),
            b"connection: %b\r\n" % b",".join(b"x-%d" % n for n in range(3000)),
            b"cookie: %b\r\n" % (b"a=b; " * 12000),
            b"x-request-id: %b\r\n" % (b"i" * 5000),
        ]
    )
    return "huge-head", _framed(lines + b"content-length: %d\r\n" % len(body), body)


def _bad_start(dice: Dice, body: bytes) -> tuple[str, bytes]:
    start = dice.choice(
        [
            b"POST /v1/chat/completions\r\n",
            b"POST  /v1/x  HTTP/1.1\r\n",
            b"post /v1/x HTTP/1.1\r\n",
            b"\r\n" * 50,
            b"POST /v1/x HTTP/2.0\r\n",
            b"POST /v1/x HTTP/0.9\r\n",
            b"POST /v1/x HTTP/1.9\r\n",
            b"POST /v1/x HTTP/1.\r\n",
            b"POST /v1/x HTTP/11.1\r\n",
            b"POST /v1/x http/1.1\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b" POST / HTTP/1.1\r\n",
            b"%b / HTTP/1.1\r\n" % (b"M" * 70000),
            b"POST /%b HTTP/1.1\r\n" % (b"a" * 70000),
            b"HTTP/1.1 200 OK\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + dice.randbytes(60),
            dice.randbytes(dice.randint(1, 300)),
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
            b"\r\n\r\n\x00\r\nQUIT\n" + dice.randbytes(30),
            b"POST\t/v1/x\tHTTP/1.1\r\n",
            b"GET / HTTP/1.0\r\n\r\n",
            b"POST /\x00 HTTP/1.1\r\n",
            b"POST /\xff\xfe HTTP/1.1\r\n",
            b"\x00" * 100,
        ]
    )
    return "bad-start", start + b"host: gate\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _odd_wishes(dice: Dice, body: bytes) -> tuple[str, bytes]:
    lines = dice.choice(
        [
            b"expect: 100-continue\r\n",
            b"expect: 200-ok\r\n",
            b"expect: 100-continue, 100-continue\r\n",
            b"expect:\r\n",
            b"connection: upgrade\r\nupgrade: websocket\r\n",
            b"connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: x\r\n",
            b"connection: close, keep-alive\r\n",
            b"connection: host, content-length, content-type\r\n",
            b"te: trailers\r\n",
            b"content-encoding: gzip\r\n",
            b"content-encoding: br, gzip\r\n",
            b"connection: transfer-encoding\r\n",
        ]
    )
    return "odd-wishes", _framed(lines + b"content-length: %d\r\n" % len(body), body)


def _noise(dice: Dice, body: bytes) -> tuple[str, bytes]:
    size = dice.choice([1, 10, 1000, 20_000])
    return "noise", dice.choice([dice.randbytes(size), b"\r\n" * size, b"A" * size, right(body)[: size % 150 + 1]])


def _pipeline(dice: Dice, body: bytes) -> tuple[str, bytes]:
    parts = [
        right(body),
        right(b"{"),
        b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n",
        right(body, lines=b"connection: close\r\n"),
    ]
    return "pipeline", b"".join(dice.choices(parts, k=dice.randint(2, 30)))


HttpWay = Callable[[Dice, bytes], tuple[str, bytes]]
HTTP: tuple[HttpWay, ...] = (
    _both_lengths,
    _odd_length,
    _odd_coding,
    _bad_chunks,
    _bad_line,
    _huge_head,
    _bad_start,
    _odd_wishes,
    _noise,
    _pipeline,
)
