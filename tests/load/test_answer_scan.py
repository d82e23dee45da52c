"""Streams of several engines, cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.scripted_server import one, stream
from tidegate.load.answer_scan import AnswerScan, Usage
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.sample import Sample
from tidegate.testing.memory_transport import Split
from tidegate.testing.virtual_loop import run_virtually

ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = (
    b'data: {"choices":[],"usage":{"prompt_tokens":42,"total_tokens":45,"completion_tokens":3,'
    b'"prompt_tokens_details":{"cached_tokens":32}}}\n\n'
)
DONE = b"data: [DONE]\n\n"


def part(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % text.encode()


def scanned(*pieces: bytes, keeps_text: bool = False) -> AnswerScan:
    scan = AnswerScan(keeps_text=keeps_text)
    for piece in pieces:
        scan.feed(piece)
    return scan


def test_the_role_is_no_part_of_the_answer_and_usage_is_the_engine_s_count() -> None:
    scan = AnswerScan()
    counts = [scan.feed(piece) for piece in (ROLE, part("a"), part("b") + part("c"), STOP, USAGE, DONE)]
    assert counts == [0, 1, 2, 0, 0, 0]
    assert (scan.parts, scan.is_done, scan.finish_reason) == (3, True, "stop")
    assert scan.usage == Usage(prompt=42, cached=32, output=3)


@pytest.mark.parametrize(
    ("event", "parts"),
    [
        (b'data: {"choices":[{"delta":{"content":null}}]}\n\n', 0),
        (b'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n', 1),
        (b'data: {"choices":[{"delta":{"content":"","reasoning_content":"hm"}}]}\n\n', 1),
        (b'data: {"choices":[{"delta":{"reasoning":"hm","content":null}}]}\n\n', 1),
        (b'data: {"choices":[{"delta":{"refusal":"no"}}]}\n\n', 1),
        (b'data: {"choices": [{"delta": {"content": "spaced"}}]}\n\n', 1),
        (b'data: {"choices": [{"delta": {"content": ""}}]}\n\n', 0),
        (b'data: {"choices":[{"text":"a completion"}]}\n\n', 1),
        (b'data: {"choices":[{"text":""}]}\n\n', 0),
        (b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}\n\n', 1),
        (b'data: {"choices":[{"delta":{"tool_calls":[]}}]}\n\n', 0),
        (b'data: {"choices":[{"delta":{"function_call":{"name":"f"}}}]}\n\n', 1),
        (b'data: {"choices":[{"delta":{"content":"\\"content\\":\\"\\""}}]}\n\n', 1),
        (b'data: {"choices":[{"delta":{"content":"\\""}}]}\n\n', 1),
        (b'event: message\ndata: {"choices":[{"delta":{"content":"x"}}]}\n\n', 1),
        (b": waiting\n\n", 0),
    ],
)
def test_what_is_a_part_of_an_answer(event: bytes, parts: int) -> None:
    assert scanned(event).parts == parts
    assert scanned(part("a"), event, part("b")).parts == parts + 2


def test_comments_do_not_hide_the_end_and_carry_the_gateway_s_word() -> None:
    scan = scanned(part("a"), b": waiting\n\n", DONE, b": x-tidegate-output: output_repetitive\n\n")
    assert scan.is_done
    assert scan.label == "output_repetitive"


def test_a_stream_that_another_replica_went_on_with_says_so() -> None:
    scan = scanned(part("a"), b": tidegate continued on r2\n\n" + part("b"), DONE)
    assert (scan.parts, scan.continuations, scan.is_done) == (2, 1, True)


def test_a_stream_without_an_end_is_not_done() -> None:
    assert not scanned(part("a"), STOP).is_done
    assert not scanned(DONE, part("a"), STOP).is_done
    assert not scanned().is_done


def test_an_error_event_is_found_and_a_null_error_is_none() -> None:
    error = b'data: {"error":{"message":"m","code":"queue_timeout"}}\n\n'
    assert scanned(part("a"), error + DONE).error == error.rstrip()
    assert scanned(b'event: error\ndata: {"x":1}\n\n').error
    assert not scanned(b'data: {"error":null,"choices":[]}\n\n', part('\\"error\\":')).error


@pytest.mark.parametrize("event", [b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', b'data: {"cho\x00\n\n'])
def test_events_that_are_no_json_or_no_utf8_are_garbled(event: bytes) -> None:
    assert scanned(part("a"), event, DONE).is_garbled
    assert not scanned(part("ä"), DONE).is_garbled


def test_kept_text_is_the_content_alone() -> None:
    thought = b'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n'
    assert scanned(ROLE, thought, part("a\\n"), part("ü"), STOP, DONE, keeps_text=True).text == "a\nü"
    assert scanned(b'data: {"choices":[{"text":"t"}]}\n\n', keeps_text=True).text == "t"
    assert scanned(part("a")).text == ""


WHOLE = ROLE + part("one") + b": waiting\n\n" + part("zwei ä") + part("\\u00fc") + STOP + USAGE + DONE


@given(cuts=st.sets(st.integers(1, len(WHOLE) - 1), max_size=12), has_returns=st.booleans())
def test_reads_may_be_cut_anywhere(cuts: set[int], has_returns: bool) -> None:
    text = WHOLE.replace(b"\n", b"\r\n") if has_returns else WHOLE
    places = [0, *sorted(cuts), len(text)]
    scan = scanned(*(text[begin:end] for begin, end in pairwise(places)), keeps_text=True)
    assert (scan.parts, scan.is_done, scan.finish_reason, scan.is_garbled) == (3, True, "stop", False)
    assert scan.usage == Usage(42, 32, 3)
    assert scan.text == "onezwei äü"


def cut_at(cuts: list[int]) -> Split:
    def split(data: bytes) -> list[bytes]:
        places = [0, *(cut for cut in cuts if cut < len(data)), len(data)]
        return [data[begin:end] for begin, end in pairwise(places)]

    return split


def told(split: Split) -> Sample:
    """On a clock that does not move within an answer, so that times are no difference."""
    whole = stream((0.5, WHOLE.removesuffix(DONE)))
    return run_virtually(one(lambda *_: whole, split, keeps_text=True))


@settings(max_examples=40)
@given(cuts=st.sets(st.integers(1, 900), max_size=10))
def test_split_reads_give_the_same_sample(cuts: set[int]) -> None:
    def plain(sample: Sample) -> Sample:
        # How many reads brought the parts is what was cut.
        sample.reads = 0
        return sample

    assert plain(told(cut_at(sorted(cuts)))) == plain(told(cut_at([])))


@settings(max_examples=60)
@given(
    body=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [ROLE, STOP, USAGE, DONE, part("a"), b"data: {}\n\n", b'data: {"choices":[{"text":"', b"\n\n"]
            ),
        ),
        max_size=8,
    ),
    is_cut=st.booleans(),
    kind=st.sampled_from([b"text/event-stream", b"application/json"]),
)
def test_whatever_a_server_says_is_one_sample(body: list[bytes], is_cut: bool, kind: bytes) -> None:
    text = b"".join(body)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (kind, len(text) + is_cut)
    sample = run_virtually(one(lambda *_: [(0.1, head), (0.1, text), (0.1, None)], keeps_text=True, wants_json=True))
    assert sample.status == 200
    assert sample.outcome in {ClientOutcome.BROKEN, ClientOutcome.ERROR} or not is_cut
    assert sample.outcome not in {ClientOutcome.UNSENT, ClientOutcome.REFUSED, ClientOutcome.TIMEOUT}


@settings(max_examples=60)
@given(said=st.binary(max_size=300))
def test_whatever_bytes_come_are_one_sample(said: bytes) -> None:
    sample = run_virtually(one(lambda *_: [(0.1, said), (0.1, None)]))
    assert sample.outcome is ClientOutcome.BROKEN
