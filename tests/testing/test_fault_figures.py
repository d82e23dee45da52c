"""The figures of bench/faults.py: what counts as traffic, as avoided, as back, and as which end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.fault_runs.figures import (
    Figures,
    Sent,
    attempts,
    avoided_s,
    back_s,
    count,
    failures,
    relapses,
    table,
    traffic_times,
    worked_again_s,
)
from bench.fault_runs.load import CHAT, COMPLETIONS, Load, Seen, judge, request_bytes
from tidegate.testing.openai_shapes import chunk, event_text, whole, whole_text
from tidegate.wire.responses import ResponseReader

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LOAD = Load(tokens=2)


def sent(*times: float, replica: str = "a") -> list[Sent]:
    return [Sent(replica, at) for at in times]


def test_three_requests_in_a_second_are_probes_and_the_fourth_is_traffic() -> None:
    assert traffic_times(sent(1.0, 1.1, 1.2), "a") == []
    assert traffic_times(sent(1.0, 1.1, 1.2, 1.3), "a") == [1.3]
    assert traffic_times(sent(1.0, 1.1, 1.2, 2.3), "a") == []
    assert traffic_times(sent(1.0, 1.1, 1.2, 1.3, replica="b"), "a") == []
    assert traffic_times(sent(5.0), "a", probes=0) == [5.0]


def test_avoided_is_the_last_traffic_before_the_first_second_without() -> None:
    assert avoided_s([9.9, 10.4, 30.0], 10.0, 20.0) == pytest.approx(0.4)
    assert avoided_s([9.9, 30.0], 10.0, 20.0) == 0.0
    assert avoided_s([10.4, 10.9, 14.0], 10.0, 20.0) == pytest.approx(0.9)
    assert avoided_s([10.5 + 0.5 * number for number in range(19)], 10.0, 20.0) is None


def test_traffic_after_it_was_avoided_is_a_relapse() -> None:
    assert relapses([10.4, 10.9, 14.0, 14.2, 18.0], 10.0, 20.0) == 2
    assert relapses([12.0, 25.0], 10.0, 20.0) == 1
    assert relapses([10.4], 10.0, 20.0) == 0


def test_back_is_the_first_traffic_after_the_healing() -> None:
    assert back_s([19.0, 22.5, 23.0], 20.0) == pytest.approx(2.5)
    assert back_s([19.0], 20.0) is None


def test_it_works_from_the_last_failure_that_was_sent_after_the_healing() -> None:
    ends = [(19.0, "error"), (20.5, "ok"), (21.5, "shed"), (23.0, "late")]
    seen = [Seen(f"{at}", True, at, end=end) for at, end in ends]
    assert worked_again_s(seen, 20.0) == pytest.approx(1.5)
    assert worked_again_s(seen[:2], 20.0) == 0.0


def test_a_retried_request_was_sent_to_the_other_replica_first() -> None:
    row = {"arrived_unix_s": 100.0, "arrived_at": 7.0, "admitted_at": 7.5, "replica": "b", "attempts": 2}
    refused: dict[str, Any] = {**row, "replica": None, "attempts": 0}
    assert attempts([row, refused], -90.0, {"b": "a"}) == [Sent("b", 10.5), Sent("a", 10.0)]


def test_the_table_has_a_line_for_each_fault_and_says_never() -> None:
    figures = Figures("hang", 2, avoided_s=0.31)
    count(figures, [Seen("x", True, 1.0, ended_at=3.0, end="error", code="cut"), Seen("y", True, 1.0, end="ok")])
    lines = table([figures, Figures("kill", 1)], {"hang": "as long as a timeout"}).splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:6] == ["hang", "2", "2", "0.3", "0", "never"]
    assert lines[1].endswith("as long as a timeout")
    assert lines[2].split()[3:6] == ["-", "-", "-"]
    assert (figures.codes, figures.longest_s, figures.client_errors) == ({"cut": 1}, 2.0, 1)


def test_each_failure_is_told_with_the_gateways_row() -> None:
    seen = [Seen("x", True, 12.0, end="error", code="cut"), Seen("y", True, 12.0, end="ok")]
    (told,) = failures(seen, [{"request_id": "x", "replica": "a", "attempts": 1}], 10.0)
    assert (told["at_s"], told["replica"], told["code"]) == (2.0, "a", "cut")


def ended(raw: bytes, load: Load = LOAD) -> tuple[str, str]:
    seen, answer = Seen("x", True, 0.0, status=200), ResponseReader()
    answer.feed(raw)
    seen.status = answer.status
    judge(load, seen, answer, b"".join(answer.pieces))
    return seen.end, seen.code


def events(*texts: str, done: bool = True, more: bytes = b"") -> bytes:
    said = [b"data: %b\n\n" % event_text("m", text, is_chat=True, is_last=False) for text in texts]
    return STREAM + b"".join(map(chunk, [*said, *([more] if more else []), *([b"data: [DONE]\n\n"] if done else [])]))


END = b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "end"),
    [
        (events("w0 ", "w1 ") + END, ("ok", "")),
        (events("w0 ", "w1 "), ("broken", "")),
        (events("w0 ", "w1 ", done=False) + END, ("broken", "")),
        (events("w0 ", "w0 ") + END, ("broken", "")),
        (events("w0 ") + END, ("broken", "")),
        (events("w0 ", more=b"data: {\n\n") + END, ("broken", "")),
        (events("w0 ", more=b'data: {"error":{"message":"x","code":"cut"}}\n\n', done=False) + END, ("error", "cut")),
        (whole(b"200 OK", whole_text("m", 0, 2, is_chat=True)), ("ok", "")),
        (whole(b"200 OK", whole_text("m", 0, 3, is_chat=True)), ("broken", "")),
        (whole(b"200 OK", b"{"), ("broken", "")),
        (whole(b"429 Busy", b'{"error":{"message":"x","code":"queue_full"}}'), ("shed", "queue_full")),
        (whole(b"429 Busy", b'{"error":{"message":"x","code":"pushback"}}'), ("error", "pushback")),
        (
            whole(b"200 OK", whole_text("m", 0, 2, is_chat=True), b"x-tidegate-degraded: cache\r\n"),
            ("degraded", "cache"),
        ),
    ],
)
def test_each_answer_has_one_end(raw: bytes, end: tuple[str, str]) -> None:
    assert ended(raw) == end


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_request_asks_for_what_the_load_says(path: str) -> None:
    raw = request_bytes("gate", Load(path=path, tokens=7), Seen("x", True, 0.0))
    body = json.loads(raw.partition(b"\r\n\r\n")[2])
    assert raw.startswith(f"POST {path} ".encode())
    assert (body["max_tokens"], body["stream"], "prompt" in body) == (7, True, path == COMPLETIONS)
