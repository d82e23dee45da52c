from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ProtocolError
from tidegate.wire.requests import Incoming, RequestReader

HEAD = b"POST /v1/x?a=1 HTTP/1.1\r\nHost: gate\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TWO = (
    HEAD + b"X-Mixed-Case: Value\r\nContent-Length: 5\r\n\r\nhello"
    b"GET /health HTTP/1.1\r\nHost: gate\r\n\r\n"
    + CHUNKED
    + b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: smuggled\r\n\r\n"
    b"GET /last HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\nthis is ignored"
)


def read(*reads: bytes, head: int = 1000, body: int = 1000) -> list[Incoming]:
    reader = RequestReader(head, body)
    for data in reads:
        reader.feed(data)
    return list(reader.ready)


def seen(requests: list[Incoming]) -> list[tuple[object, ...]]:
    return [(r.method, r.target, r.headers, r.body, r.keeps_alive, r.is_http10) for r in requests]


def test_pipelined_requests_come_out_whole_and_in_order() -> None:
    assert seen(read(TWO)) == [
        (b"POST", b"/v1/x?a=1", [(b"host", b"gate"), (b"x-mixed-case", b"Value"), (b"content-length", b"5")],
         b"hello", True, False),
        (b"GET", b"/health", [(b"host", b"gate")], b"", True, False),
        (b"POST", b"/v1/x?a=1", [(b"host", b"gate"), (b"transfer-encoding", b"chunked")], b"abcde", True, False),
        (b"GET", b"/last", [(b"host", b"gate"), (b"connection", b"close")], b"", False, False),
    ]  # fmt: skip


@given(st.lists(st.integers(0, len(TWO)), max_size=8))
def test_where_reads_split_the_bytes_makes_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TWO)]
    pieces = [TWO[start:end] for start, end in itertools.pairwise(edges)]
    assert seen(read(*pieces)) == seen(read(TWO))


def test_byte_by_byte_is_the_same_too() -> None:
    assert seen(read(*(TWO[at : at + 1] for at in range(len(TWO))))) == seen(read(TWO))


@pytest.mark.parametrize(
    ("request_bytes", "status", "says"),
    [
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "Transfer-Encoding"),
        (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400, "Content-Length"),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "Content-Length"),
        *[(HEAD + b"Content-Length: %b\r\n\r\nabc" % odd, 400, "Content-Length")
          for odd in (b"+3", b"-3", b"3, 3", b"0x3", b"3 3", b"", b"9" * 23, b"3_0", b"\xb2")],
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "chunked"),
        (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, "chunked"),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "1.0"),
        (CHUNKED + b" 3\r\nabc\r\n0\r\n\r\n", 400, "chunk size"),
        (CHUNKED + b"3\nabc\n0\n\n", 400, "chunk size"),
        (CHUNKED + b"3\r\nabcX0\r\n\r\n", 400, "chunk data"),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400, "CRLF"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, "whitespace"),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "token"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400, "value char"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400, "LF"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "host is given more than once"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nAuthorization: y\r\n\r\n", 400, "more than once"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "CONNECT"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00\x01", 400, "method"),
        (HEAD + b"Expect: 200-ok\r\n\r\n", 417, "100-continue"),
        (HEAD + b"Content-Length: 1001\r\n\r\n", 413, "1000 bytes"),
        (CHUNKED + b"3e9\r\n" + b"x" * 1001, 413, "1000 bytes"),
        (HEAD + b"Cookie: " + b"x" * 1001, 431, "1000 bytes"),
        (HEAD + b"Cookie: " + b"x" * 1001 + b"\r\n\r\n", 431, "1000 bytes"),
    ],
)  # fmt: skip
def test_what_two_servers_could_read_differently_is_refused(request_bytes: bytes, status: int, says: str) -> None:
    for reads in ([request_bytes], [request_bytes[at : at + 1] for at in range(len(request_bytes))]):
        with pytest.raises(ProtocolError, match=says) as caught:
            read(*reads)
        assert caught.value.status == status


def test_a_large_body_does_not_count_as_head() -> None:
    assert read(HEAD + b"Content-Length: 900\r\n\r\n" + b"x" * 900, head=200)[0].body == b"x" * 900


def test_the_head_limit_holds_for_each_request_apart() -> None:
    one = HEAD + b"Content-Length: 900\r\n\r\n" + b"x" * 900
    assert len(read(*[one] * 3, head=200)) == 3


def test_a_client_that_waits_for_leave_to_send_is_noticed() -> None:
    reader = RequestReader(1000, 1000)
    reader.feed(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    assert (reader.awaits_continue, reader.is_partial, reader.has_head, list(reader.ready)) == (True, True, True, [])
    reader.feed(b"abc")
    assert (reader.awaits_continue, reader.is_partial, reader.ready[0].body) == (False, False, b"abc")


def test_the_body_of_a_request_that_asks_for_an_upgrade_is_read() -> None:
    # The JDK's HTTP client asks for h2c on every cleartext request, with its body behind it.
    asks = (
        HEAD
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nContent-Length: 3\r\n\r\nabc"
    )
    both = asks + b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
    for reads in ([both], [both[at : at + 1] for at in range(len(both))]):
        assert [(r.target, r.body) for r in read(*reads)] == [(b"/v1/x?a=1", b"abc"), (b"/next", b"")]


def test_an_upgrade_without_a_body_is_an_ordinary_request() -> None:
    asks = b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert [r.target for r in read(asks)] == [b"/ws"]


def test_an_upgrade_with_a_chunked_body_is_refused() -> None:
    asks = HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n"
    with pytest.raises(ProtocolError, match="chunked"):
        read(asks)


@pytest.mark.parametrize(("connection", "keeps_alive"), [(b"", False), (b"Connection: keep-alive\r\n", True)])
def test_an_http10_client_is_known_by_its_version(connection: bytes, keeps_alive: bool) -> None:
    request = read(b"GET / HTTP/1.0\r\n" + connection + b"\r\n")[0]
    assert (request.is_http10, request.keeps_alive) == (True, keeps_alive)


def test_a_closed_reader_reads_nothing_more() -> None:
    reader = RequestReader(1000, 1000)
    reader.close()
    reader.feed(TWO)
    assert not reader.ready


def test_a_head_behind_another_request_in_the_same_read_is_bounded_too() -> None:
    reader = RequestReader(1000, 1000)
    with pytest.raises(ProtocolError, match="1000 bytes") as caught:
        reader.feed(HEAD + b"\r\n" + HEAD + b"Cookie: " + b"x" * 1001 + b"\r\n\r\n")
    assert caught.value.status == 431
    assert len(reader.ready) == 1
