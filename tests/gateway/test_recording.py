"""An answer that is kept: what is complete, what is too long, and how it is said again."""

from __future__ import annotations

import pytest

from tidegate.gateway.recording import Recording, others
from tidegate.wire.sse import HEARTBEAT

STREAM = b"content-type: text/event-stream; charset=utf-8\r\n"
JSON = b"content-type: application/json\r\nX-Request-Id: one\r\nx-ratelimit-limit-requests: 6\r\n"


def streamed(*pieces: bytes) -> Recording:
    recording = Recording(1000)
    recording.open(200, STREAM, None, b"")
    for piece in pieces:
        recording.piece(piece)
    recording.end()
    return recording


@pytest.mark.parametrize(
    ("pieces", "is_complete"),
    [
        ((b"data: 1\n\n", b"data: [DO", b"NE]\n\n"), True),
        ((b"data: 1\r\n\r\ndata: [DONE]\r\n\r\n",), True),
        ((b"data:[DONE]\n\n", HEARTBEAT), True),
        ((b"data: 1\n\n",), False),
        ((b'data: "data: [DONE]"\n\n',), False),
        ((b'data: [DONE]\n\ndata: {"error": {}}\n\n',), False),
        ((b'event: response.completed\ndata: {"response": {}}\n\n',), True),
        ((b"event: message_stop\r\ndata: {}\r\n\r\n",), True),
        ((b"event: message_stop\ndata: {}\n\nevent: error\ndata: {}\n\n",), False),
        ((b"event: message_delta\ndata: {}\n\n",), False),
        ((), False),
    ],
)
def test_a_stream_is_complete_when_its_last_event_ends_it(pieces: tuple[bytes, ...], is_complete: bool) -> None:
    assert streamed(*pieces).is_complete is is_complete


def test_what_is_not_over_broke_off_or_is_too_long_is_not_complete() -> None:
    recording = Recording(10)
    assert not recording.is_complete
    recording.open(200, b"", b"4", b"ab")
    assert not recording.is_complete
    recording.break_off()
    assert not recording.is_complete
    long = Recording(10)
    long.whole(200, JSON, b"x" * 11)
    assert (long.is_too_long, long.size_bytes, long.body, long.is_complete) == (True, 0, b"", False)
    assert long.unsent_bytes == 0


def test_it_is_said_again_as_it_was_said() -> None:
    whole, again = Recording(1000), Recording(1000)
    whole.whole(404, JSON, b"{}")
    whole.play(again, others(whole.lines))
    assert (again.status, again.lines, again.body, again.is_whole) == (
        404,
        b"content-type: application/json\r\n",
        b"{}",
        True,
    )
    begun, heard = Recording(1000), Recording(1000)
    begun.play(heard, b"")
    assert not heard.has_head
    begun.open(200, STREAM, b"9", b"abc")
    begun.piece(HEARTBEAT)
    begun.piece(b"def")
    begun.play(heard, begun.lines)
    assert (heard.length, heard.body, heard.is_over) == (b"9", b"abcdef", False)
    begun.end(b"ghi")
    late = Recording(1000)
    begun.play(late, begun.lines)
    assert (late.body, late.is_complete) == (b"abcdefghi", False)


def test_a_header_is_found_by_its_name_whatever_its_case() -> None:
    recording = Recording(10)
    recording.whole(200, JSON, b"")
    assert (recording.field(b"x-request-id"), recording.field(b"nothing")) == (b"one", b"")
