"""Times of one answer: first part, last part, and the gaps between."""

from __future__ import annotations

import pytest

from tests.load.asks_of_a_test import ask
from tests.load.scripted_server import ScriptedServer, event, one, stream
from tests.load.test_answer_scan import ROLE, STOP, USAGE
from tidegate.load.gap_counts import value_of
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.testing.virtual_loop import run_virtually


def test_times_begin_with_the_first_content_and_end_with_the_last() -> None:
    steps = stream((0.2, ROLE), (0.3, event("a")), (0.1, event("b")), (0.4, event("c")), (0.5, STOP + USAGE))
    sample = run_virtually(one(lambda *_: steps, max_tokens=3, prompt_tokens=40))
    sent = sample.sent_at
    assert sample.head_at - sent == pytest.approx(0.2)
    assert sample.ttft_s == pytest.approx(0.5)
    assert sample.last_at - sent == pytest.approx(1.0)
    assert sample.e2e_s == pytest.approx(1.5)
    assert sample.worst_gap_s == pytest.approx(0.4)
    assert sample.tpot_s == pytest.approx(0.25)
    assert (sample.chunks, sample.reads, sample.output_tokens, sample.is_counted) == (3, 3, 3, True)
    assert (sample.prompt_tokens, sample.cached_tokens, sample.meant_tokens) == (42, 32, 40)
    assert (sample.finish_reason, sample.max_tokens, sample.is_stream) == ("stop", 3, True)


def test_events_that_come_together_are_one_gap_between_reads_and_each_its_part_between_tokens() -> None:
    steps = stream((0.1, event("a") + event("b")), (0.3, event("c") + event("d") + event("e")), (0.1, event("f")))

    async def main() -> tuple[Sender, Sample]:
        sender = ScriptedServer(lambda *_: steps).sender()
        sample = await sender.ask(ask())
        await sender.close()
        return sender, sample

    sender, sample = run_virtually(main())
    assert (sample.chunks, sample.reads) == (6, 3)
    gaps = {round(value_of(bucket), 2): count for bucket, count in sender.gaps.buckets.items()}
    token_gaps = {round(value_of(bucket), 2): count for bucket, count in sender.token_gaps.buckets.items()}
    assert gaps == {0.3: 1, 0.1: 1}
    assert token_gaps == {0.1: 4}


def test_without_usage_chunks_are_counted_and_it_says_so() -> None:
    sample = run_virtually(one(lambda *_: stream((0.1, event("a")), (0.1, event("b")))))
    assert (sample.output_tokens, sample.is_counted) == (2, False)


def test_a_whole_answer_has_the_first_byte_of_its_body_as_its_first_moment() -> None:
    body = b'{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":9}}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    steps = [(0.1, head), (0.2, body[:10]), (0.3, body[10:])]
    sample = run_virtually(one(lambda *_: steps, stream=False, keeps_text=True))
    assert sample.head_at - sample.sent_at == pytest.approx(0.1)
    assert sample.ttft_s == pytest.approx(0.3)
    assert sample.last_at == sample.first_at < sample.ended_at
    assert (sample.text, sample.output_tokens, sample.reads, sample.tpot_s) == ("x", 9, 0, None)


def test_a_whole_answer_to_a_request_for_a_stream_has_no_time_per_token() -> None:
    body = b'{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":9}}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    sample = run_virtually(one(lambda *_: [(0.1, head), (0.2, body[:10]), (0.3, body[10:])]))
    assert (sample.outcome, sample.is_stream, sample.tpot_s) == ("ok", True, None)


def test_text_is_in_the_sample_only_where_it_is_kept() -> None:
    steps = stream((0.1, event("{")), (0.1, event("}")))
    assert run_virtually(one(lambda *_: steps, keeps_text=True)).text == "{}"
    assert run_virtually(one(lambda *_: steps)).text == ""
    wanted = run_virtually(one(lambda *_: steps, wants_json=True))
    assert (wanted.outcome, wanted.text) == ("ok", "")
    assert run_virtually(one(lambda *_: stream((0.1, event("no"))), wants_json=True)).code == "output_format"


def test_odd_numbers_of_the_gateway_are_no_end_of_the_run() -> None:
    lines = b"x-tidegate-queue-ms: soon\r\n"
    assert run_virtually(one(lambda *_: stream((0.1, event("a")), lines=lines))).queue_s == 0.0
