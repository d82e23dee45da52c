"""Whether what a server sent is well-formed: HTTP/1.1 to the letter, and errors in OpenAI's shape.

A reader of its own, stricter than any client and sharing nothing with the code under test.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-9]\d\d) [\t\x20-\x7e\x80-\xff]*")
FIELD_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")
CHUNK_LINE = re.compile(rb"[0-9a-f]+")
MOST_HELD_BYTES = 1 << 20
"""A longer answer is not held until it is whole."""


class MalformedError(AssertionError):
    """What is wrong with what the server sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[bytes, bytes]
    body: bytes
    is_whole: bool = True


def answers_in(raw: bytes, *, is_closed: bool, is_head: bool = False) -> list[Answer]:
    """Every answer in the bytes of one connection, interim ones left out. Raises ``MalformedError``.

    ``is_closed``: the server ended the connection. What is cut then must be a body that was passed on as it came: its
    end is how such an answer says that it failed.
    """
    found = []
    while raw:
        answer, raw = _next(raw, is_closed=is_closed, is_head=is_head)
        if answer is None:
            break
        if answer.status >= 200:
            check(answer, is_head=is_head)
            found.append(answer)
        if is_head and answer.headers.get(b"connection") == b"close":
            # A request that could not be read was not known to be HEAD: its answer has a body, and is the last.
            break
    return found


def check(answer: Answer, *, is_head: bool = False) -> None:
    """Raises ``MalformedError``."""
    content_type = answer.headers.get(b"content-type", b"")
    if answer.status >= 400 and not is_head:
        if not content_type.startswith(b"application/json"):
            raise MalformedError(f"an error of type {content_type!r}")
        _check_error(answer.body)


def _next(raw: bytes, *, is_closed: bool, is_head: bool) -> tuple[Answer | None, bytes]:
    head, mark, rest = raw.partition(b"\r\n\r\n")
    if not mark:
        if is_closed:
            raise MalformedError(f"a head without an end: {raw[:200]!r}")
        return None, b""
    first, *lines = head.split(b"\r\n")
    match = STATUS_LINE.fullmatch(first)
    if match is None:
        raise MalformedError(f"no status line: {first[:200]!r}")
    status, headers = int(match[1]), _headers(lines)
    if status < 200:
        return Answer(status, headers, b""), rest
    if is_head or status in (204, 304):
        if b"transfer-encoding" in headers or (status == 204 and b"content-length" in headers):
            raise MalformedError(f"{status} has no body, and says how it is framed: {headers!r}")
        return Answer(status, headers, b""), rest
    if headers.get(b"transfer-encoding") == b"chunked":
        body, rest, is_whole = _chunks(rest)
    elif b"content-length" in headers:
        size = int(headers[b"content-length"])
        body, rest, is_whole = rest[:size], rest[size:], len(rest) >= size
    else:
        body, rest, is_whole = rest, b"", is_closed
    if not is_whole and is_closed and not _may_be_cut(headers):
        raise MalformedError(f"{status} was cut: {headers!r} {body[-200:]!r}")
    return (Answer(status, headers, body, is_whole), rest) if is_whole or is_closed else (None, b"")


def _may_be_cut(headers: dict[bytes, bytes]) -> bool:
    """Bytes that merely pass have no other way to say that they end too early."""
    if int(headers.get(b"content-length", b"0")) > MOST_HELD_BYTES:
        return True
    return not headers.get(b"content-type", b"").startswith((b"application/json", b"text/event-stream"))


def _headers(lines: list[bytes]) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in lines:
        if FIELD_LINE.fullmatch(line) is None:
            raise MalformedError(f"no header line: {line[:200]!r}")
        name, _, value = line.partition(b":")
        if name.lower() in headers and name.lower() in (b"content-length", b"transfer-encoding"):
            raise MalformedError(f"{name!r} twice")
        headers[name.lower()] = value.strip()
    if b"content-length" in headers and b"transfer-encoding" in headers:
        raise MalformedError("two framings")
    return headers


def _chunks(rest: bytes) -> tuple[bytes, bytes, bool]:
    body: list[bytes] = []
    while True:
        line, mark, after = rest.partition(b"\r\n")
        if not mark:
            return b"".join(body), b"", False
        if CHUNK_LINE.fullmatch(line) is None:
            raise MalformedError(f"no chunk size: {line[:200]!r}")
        size = int(line, 16)
        if len(after) < size + 2:
            return b"".join([*body, after[:size]]), b"", False
        if after[size : size + 2] != b"\r\n":
            raise MalformedError("a chunk that is longer than it says")
        body.append(after[:size])
        rest = after[size + 2 :]
        if not size:
            return b"".join(body), rest, True


def _check_error(body: bytes) -> None:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError) as problem:
        raise MalformedError(f"an error that is none in OpenAI's shape: {body[:300]!r}") from problem
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        raise MalformedError(f"an error without a message: {body[:300]!r}")
