"""Cases that once broke something, or that others are known to have been broken by; each is played in every run."""

from __future__ import annotations

from tests.fuzz.attack import Attack, right, said
from tests.fuzz.hostile_answers import Step

BODY = said("m")
REQUESTS: tuple[Attack, ...] = (
    Attack(
        "CL.TE smuggling",
        [
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\r\n",
            b"0\r\n\r\nG",
        ],
    ),
    Attack("arrays inside each other", [right(BODY[:-1] + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}")], is_due=True),
    Attack("a name that is not UTF-8", [right(b'{"model":"m","\xff":1}')], is_due=True),
    Attack("more tokens than 64 bits can count", [right(b'{"model":"m","max_tokens":%b}' % (b"9" * 30))], is_due=True),
    Attack("one byte a chunk", [b"GET /health HTTP/1.1\r\nhost: a\r\n", b"\r", b"\n"], is_due=True),
    Attack("HEAD of what an engine has", [b"HEAD /v1/files HTTP/1.1\r\nhost: a\r\n\r\n"], is_due=True, is_head=True),
)

ANSWERS: tuple[list[Step], ...] = (
    [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5\r\n\r\ndata:"],
    [b"HTTP/1.1 204 No Content\r\n\r\n"],
)
