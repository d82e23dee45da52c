from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.sse import COMPLETION_TOKENS, LONGEST_EVENT_BYTES, EventScan, error_event, usage_count

TOKEN = (
    b'data: {"choices":[{"delta":{"content":"say \\"data: x\\"\\n\\ndata: [DONE] \\"completion_tokens\\": 99"}}]}\n\n'
)
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":42,"total_tokens":45,"completion_tokens": 3}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM = b": ping\n\n" + TOKEN + b'data:{"choices":[]}\n\n' + TOKEN + USAGE + DONE
ERROR = b'data: {"error": {"message": "EngineCore encountered an issue", "code": 500}}\n\n'


def scanned(stream: bytes, cuts: list[int]) -> EventScan:
    scan = EventScan()
    edges = [0, *sorted(cuts), len(stream)]
    for start, end in itertools.pairwise(edges):
        if end > start:
            scan.feed(stream[start:end])
    return scan


@given(st.lists(st.integers(0, len(STREAM)), max_size=10), st.booleans())
def test_where_reads_split_the_stream_makes_no_difference(cuts: list[int], has_crlf: bool) -> None:
    stream = STREAM.replace(b"\n\n", b"\r\n\r\n") if has_crlf else STREAM
    scan = scanned(stream, [min(cut, len(stream)) for cut in cuts])
    assert (scan.events, scan.prompt_tokens, scan.completion_tokens) == (5, 42, 3)
    assert (scan.is_done, scan.is_between_events, scan.error_ends_at) == (True, True, None)


def test_each_feed_tells_how_many_events_it_completed() -> None:
    scan = EventScan()
    assert [scan.feed(piece) for piece in (TOKEN[:9], TOKEN[9:] + TOKEN, b": ping\n\n", USAGE[:-1], b"\n")] == [
        0,
        2,
        0,
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("fed", "is_between"), [(b"", True), (TOKEN[:20], False), (TOKEN, True), (TOKEN + b":", False)]
)
def test_a_heartbeat_may_go_out_only_between_events(fed: bytes, is_between: bool) -> None:
    assert scanned(fed, []).is_between_events is is_between


@given(st.lists(st.integers(0, len(TOKEN + ERROR)), max_size=6))
def test_the_end_of_an_engines_error_is_found_in_the_read_that_completes_it(cuts: list[int]) -> None:
    stream = TOKEN + ERROR + DONE
    scan, passed = EventScan(), 0
    edges = [0, *sorted(cuts), len(stream)]
    for start, end in itertools.pairwise(edges):
        if end > start:
            scan.feed(stream[start:end])
        if scan.error_ends_at is not None:
            assert passed + scan.error_ends_at == len(TOKEN + ERROR)
            return
        passed += end - start
    raise AssertionError("the error was not seen")


@pytest.mark.parametrize(
    "quiet",
    [
        b'data: {"error": null, "choices": []}\n\n',
        b'data: {"choices":[{"delta":{"content":"an \\"error\\": {} \\ndata: {\\"error\\": 1}"}}]}\n\n',
        b'data: {"choices":[{"error": {}}]}\n\n',
    ],
)
def test_what_only_looks_like_an_error_is_none(quiet: bytes) -> None:
    assert scanned(quiet, []).error_ends_at is None


def test_a_named_error_event_counts_as_one() -> None:
    stream = b'event: error\ndata: {"message": "x"}\n\n'
    assert scanned(stream + DONE, []).error_ends_at == len(stream)


def test_done_counts_only_as_the_last_thing() -> None:
    assert scanned(DONE + TOKEN, []).is_done is False
    assert scanned(TOKEN + b"data: [DONE]", []).is_done is True
    assert scanned(TOKEN, []).is_done is False


def test_an_event_without_end_is_not_kept_for_ever() -> None:
    scan = EventScan()
    for _ in range(3):
        scan.feed(b"x" * (LONGEST_EVENT_BYTES // 2 + 1))
    assert scan.events == 0
    scan.feed(b"\n\n" + TOKEN)
    assert scan.events == 1


def test_usage_counts_the_last_number_under_a_key() -> None:
    assert usage_count(b'{"completion_tokens":1,"x":{"completion_tokens" : 22}}', COMPLETION_TOKENS) == 22
    assert usage_count(b'{"completion_tokens":null}', COMPLETION_TOKENS) is None
    assert usage_count(b"{}", COMPLETION_TOKENS) is None


def test_our_own_error_event_is_one_that_the_scan_knows() -> None:
    assert scanned(error_event(b'{"error":{"message":"cut"}}'), []).error_ends_at is not None
