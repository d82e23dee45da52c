"""What passed a fault proxy, read from the bytes that passed."""

from __future__ import annotations

import json

import pytest

from tidegate.load.drills.wiretap import Ledger, Wiretap
from tidegate.testing.openai_shapes import chunk, whole

STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def request(number: int, method: str = "POST") -> bytes:
    body = json.dumps({"n": number}).encode()
    head = f"{method} /v1/completions HTTP/1.1\r\nhost: a\r\nx-request-id: r{number}\r\nx-drill-call: c{number}\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_a_request_counts_when_it_is_whole(ledger: Ledger) -> None:
    tap, text = Wiretap(ledger), request(1)
    tap.ask(text[:-1])
    assert not ledger.log
    tap.ask(text[-1:])
    (passed,) = ledger.log
    assert (passed.method, passed.target, passed.request_id, passed.call) == ("POST", "/v1/completions", "r1", "c1")


def test_an_answer_counts_when_its_last_chunk_came(ledger: Ledger) -> None:
    tap = Wiretap(ledger)
    tap.ask(request(1))
    tap.answer(STREAM + chunk(b"data: x\n\n"))
    assert not ledger.answered
    tap.answer(b"0\r\n\r\n")
    tap.ask(request(2))
    tap.answer(whole(b"200 OK", b"{}"))
    tap.close()
    assert ledger.answered == {"r1": 1, "r2": 1}
    assert ledger.answered_calls == {"c1": 1, "c2": 1}


def test_refusals_and_pages_are_no_answers(ledger: Ledger) -> None:
    tap = Wiretap(ledger)
    tap.ask(request(1))
    tap.answer(whole(b"500 Broken", b"{}"))
    tap.ask(request(2, "GET"))
    tap.answer(whole(b"200 OK", b"{}"))
    assert not ledger.answered


def test_what_is_no_http_is_not_noted_and_does_no_harm(ledger: Ledger) -> None:
    tap = Wiretap(ledger)
    tap.ask(b"\x16\x03\x01 hello\r\n\r\n")
    tap.ask(request(1))
    tap.answer(b"\x00\x01\x02\r\n\r\n")
    tap.close()
    assert not ledger.log
    assert not ledger.answered
