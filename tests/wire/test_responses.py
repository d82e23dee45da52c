from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ProtocolError
from tidegate.wire.responses import ResponseReader

CHUNKED = (
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: late\r\n\r\n"
)


def fed(*reads: bytes) -> ResponseReader:
    reader = ResponseReader()
    for data in reads:
        reader.feed(data)
    return reader


@given(st.lists(st.integers(0, len(CHUNKED)), max_size=8))
def test_where_reads_split_the_bytes_makes_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(CHUNKED)]
    reader = fed(*(CHUNKED[start:end] for start, end in itertools.pairwise(edges)))
    assert (reader.status, b"".join(reader.pieces), reader.is_complete, reader.keeps_alive) == (
        200,
        b"abcdefg",
        True,
        True,
    )
    assert reader.headers == [(b"content-type", b"text/plain"), (b"transfer-encoding", b"chunked")]


def test_one_connection_carries_answer_after_answer() -> None:
    reader = ResponseReader()
    for number in (1, 2):
        reader.start()
        reader.feed(b"HTTP/1.1 20%d X\r\nContent-Length: 2\r\n\r\nok" % number)
        assert (reader.status, reader.pieces, reader.is_complete, reader.keeps_alive) == (
            200 + number,
            [b"ok"],
            True,
            True,
        )


def test_an_answer_that_ends_its_connection_says_so() -> None:
    assert not fed(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").keeps_alive


@pytest.mark.parametrize(
    ("answer", "is_whole"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-", False),
        (b"", False),
    ],
)
def test_only_an_unframed_answer_may_end_with_its_connection(answer: bytes, is_whole: bool) -> None:
    assert fed(answer).finish() is is_whole


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_answer_is_an_error(answer: bytes) -> None:
    with pytest.raises(ProtocolError):
        fed(answer)


def test_a_head_without_end_is_given_up() -> None:
    with pytest.raises(ProtocolError, match="head"):
        fed(b"HTTP/1.1 200 OK\r\nX-Pad: ", *[b"x" * 32_768] * 20)


def test_nothing_has_begun_before_the_first_byte() -> None:
    reader = ResponseReader()
    assert (reader.has_begun, reader.has_head) == (False, False)
    reader.feed(b"H")
    assert (reader.has_begun, reader.has_head) == (True, False)
    reader.close()
    reader.feed(b"TTP")
    assert not reader.has_head
