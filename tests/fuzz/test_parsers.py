"""What reads bytes of strangers, alone: any bytes, cut anywhere, end in a value or in the one error that is meant."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.attack import right
from tests.fuzz.hostile import attack
from tests.fuzz.hostile_answers import steps
from tidegate.errors import ProtocolError
from tidegate.gateway.access import Access
from tidegate.gateway.hints import hints
from tidegate.gateway.judgement import shown_error
from tidegate.policy.outcomes import Outcome
from tidegate.wire.body import Body
from tidegate.wire.requests import RequestReader
from tidegate.wire.responses import ResponseReader

ALPHABET = [
    *(b"GET ", b"POST ", b"/v1/x", b" HTTP/1.1\r\n", b"host: a\r\n", b"content-length: 3\r\n", b"\r\n", b"\r", b"\n"),
    *(b"transfer-encoding: chunked\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"abc", b"\x00", b"\xff", b"x-a: b\r\n", b":"),
    *(b"upgrade: h2c\r\n", b"connection: upgrade\r\n", b"expect: 100-continue\r\n", b"HTTP/1.1 200 OK\r\n", b" "),
    b"HTTP/1.1 100 Continue\r\n\r\n",
]
WORDS = st.lists(st.sampled_from(ALPHABET) | st.binary(max_size=4), max_size=40).map(b"".join)
SEEDS = st.integers(0, 2**48)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("data:" + "A" * 2000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)
FIELDS = ("model", "messages", "prompt", "input", "max_tokens", "stream", "stream_options", "n", "best_of", "user")
NAMES = (
    b"x-tidegate-deadline-ms", b"grpc-timeout", b"x-stainless-read-timeout", b"x-tidegate-class", b"x-tidegate-session"
)  # fmt: skip

REFUSED_WITH = ("", "400", "405", "413", "417", "431", "501")


def read(data: bytes, cuts: list[int]) -> tuple[list[tuple[bytes, bytes, bytes]], str]:
    """Whole requests and the error, if any."""
    reader = RequestReader(4096, 1 << 20)
    found = []
    ends = sorted({*(cut % (len(data) + 1) for cut in cuts), 0, len(data)})
    try:
        for start, end in pairwise(ends):
            reader.feed(data[start:end])
            found += [(each.method, each.target, each.body) for each in reader.ready]
            reader.ready.clear()
    except ProtocolError as error:
        found += [(each.method, each.target, each.body) for each in reader.ready]
        return found, str(error.status)
    finally:
        reader.close()
    return found, ""


@settings(max_examples=120, deadline=None)
@given(WORDS | SEEDS.map(lambda seed: attack(seed).sent[:20_000]), st.lists(st.integers(0, 1 << 16), max_size=8))
def test_any_bytes_are_requests_or_a_protocol_error_wherever_they_are_cut(data: bytes, cuts: list[int]) -> None:
    whole, cut = read(data, []), read(data, cuts)
    assert whole[1] in REFUSED_WITH
    assert cut[1] in REFUSED_WITH
    if not whole[1] and not cut[1]:
        assert whole == cut


@settings(max_examples=120, deadline=None)
@given(WORDS | SEEDS.map(lambda seed: b"".join(step for step in steps(seed) if isinstance(step, bytes))[:50_000]))
def test_any_bytes_are_an_answer_or_a_protocol_error(data: bytes) -> None:
    reader = ResponseReader()
    with suppress(ProtocolError):
        for at in range(0, len(data), 997):
            reader.feed(data[at : at + 997])
        reader.finish()
        assert isinstance(reader.headers, list)
    reader.close()


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.binary(max_size=3), st.integers(0, 1 << 16))
def test_any_json_is_a_body_that_can_be_edited_or_a_protocol_error(
    fields: dict[str, Any], noise: bytes, at: int
) -> None:
    text = json.dumps(fields).encode()
    at %= len(text)
    for given_text in (text, text[:at] + noise + text[at + len(noise) :]):
        try:
            body = Body(given_text)
        except ProtocolError:
            continue
        assert body.prompts >= 0
        assert body.edited({}) == given_text
        assert json.loads(body.edited({"model": "other"}), strict=False)["model"] == "other"


@settings(max_examples=120, deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=12) | st.from_regex(rb"\A[0-9.eE+-]{1,12}[HMSmun]?\Z"))
)
def test_any_header_is_a_hint_or_a_value_error(fields: dict[bytes, bytes]) -> None:
    try:
        found = hints(fields)
    except ValueError:
        return
    for seconds in (found.deadline_s, found.first_byte_s):
        assert seconds is None or 0 <= seconds < float("inf")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_forwarded_address_is_taken_or_left(value: bytes) -> None:
    access = Access((), ("127.0.0.0/8",))
    assert isinstance(access.source("127.0.0.1", {b"x-forwarded-for": value}), str)


@settings(max_examples=120, deadline=None)
@given(
    st.binary(max_size=80) | JSON.map(lambda value: json.dumps({"error": value}).encode()), st.sampled_from([400, 500])
)
@example(b"[" * 3000 + b"]" * 3000, 500)
@example(b'{"error":{"message":null}}', 400)
@example(b'{"error":{"message":"\\ud800"}}', 400)
def test_any_error_of_an_engine_is_shown_in_openais_shape(body: bytes, status: int) -> None:
    outcome = Outcome.CLIENT_FAULT if status == 400 else Outcome.ENGINE_ERROR
    assert isinstance(json.loads(shown_error(status, body, outcome))["error"]["message"], str)


def test_a_right_request_is_read() -> None:
    assert read(right(b"{}"), [3, 50]) == ([(b"POST", b"/v1/chat/completions", b"{}")], "")
