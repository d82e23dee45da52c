"""Answers that are not as they should be: what is found, what the client gets, what is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    Engine,
    Got,
    Stand,
    Step,
    chat,
    chunk,
    event,
    json_answer,
    post,
    stand_for,
)
from tidegate.gateway.settings import Endpoint
from tidegate.gateway.watching import LARGE_BYTES, MOST_BYTES, READS, Watch, expected_of, whole_finding
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.output.answer_check import Expected
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.output.problem import Action, Problem
from tidegate.policy.path_config import PathConfig
from tidegate.policy.retries import RetriesConfig
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.body import Body

USUAL = Expected(config=OutputConfig())
JSON_MODE = {"response_format": {"type": "json_object"}}
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def whole(text: str | None, reason: str = "stop", **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}
    return json_answer({"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


def ended(reason: str = "stop") -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).encode() + b"\n\n"


def stream(*texts: str, reason: str = "stop") -> list[Step]:
    return [STREAM_HEAD, *(chunk(event(text)) for text in texts), chunk(ended(reason)), chunk(DONE) + STREAM_END]


def problems(stand: Stand) -> dict[tuple[str, str], int]:
    replicas = stand.metrics.snapshot({}, 0).replicas
    return {(each.replica, problem): count for each in replicas for problem, count in each.output_problems}


def label(got: Got) -> bytes | None:
    return got.headers.get(b"x-tidegate-output")


# ---- whole answers ------------------------------------------------------------------------------

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
BAD: list[tuple[dict[str, Any], bytes, Problem]] = [
    ({}, whole(""), Problem.EMPTY),
    ({}, whole(None), Problem.EMPTY),
    ({}, whole(" \n "), Problem.EMPTY),
    ({}, json_answer({"choices": []}), Problem.EMPTY),
    ({}, json_answer({}), Problem.EMPTY),
    ({}, whole("\ufffd" * 40), Problem.GARBLED),
    (
        {},
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 6\r\n\r\n\xff\xfe{][x",
        Problem.GARBLED,
    ),
    ({}, whole("no, " * 500), Problem.REPETITIVE),
    ({}, whole("half of", "length"), Problem.TRUNCATED),
    (JSON_MODE, whole("Sure! {}"), Problem.FORMAT),
    (JSON_MODE, whole('{"a": 1'), Problem.TRUNCATED),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, whole("{}"), Problem.FORMAT),
    ({"response_format": {"type": "json_object", "schema": SCHEMA}}, whole('{"a": "x"}'), Problem.FORMAT),
    ({"guided_json": SCHEMA}, whole("{}"), Problem.FORMAT),
    ({"guided_json": json.dumps(SCHEMA)}, whole("{}"), Problem.FORMAT),
    ({"structured_outputs": {"json": SCHEMA}}, whole("{}"), Problem.FORMAT),
]

GOOD: list[tuple[dict[str, Any], bytes]] = [
    ({}, whole("hi")),
    ({}, whole("Grüße aus Köln, 漢字")),
    ({}, whole(None, "tool_calls", tool_calls=[{"id": "1"}])),
    ({}, whole(None, refusal="I will not.")),
    ({}, whole(None, "content_filter")),
    ({"stop": ["\n"]}, whole("")),
    ({"max_tokens": 0}, whole("")),
    (JSON_MODE, whole('{"a": [1, 2]}')),
    ({"response_format": {"type": "text"}}, whole("no JSON")),
    ({"response_format": "nonsense", "guided_json": "nonsense", "structured_outputs": [1]}, whole("no JSON")),
    ({"guided_json": SCHEMA}, whole('{"a": 1}')),
    ({}, json_answer({"choices": "of another shape"})),
]


@pytest.mark.parametrize(("asked", "answer", "problem"), BAD)
def test_a_bad_whole_answer_is_given_with_a_label_and_counted(
    asked: dict[str, Any], answer: bytes, problem: Problem
) -> None:
    async def main() -> None:
        marking = OutputConfig(empty=Action.MARK, garbled=Action.MARK)
        with stand_for(Engine([answer]), output=marking) as stand:
            got = await stand.ask(post(chat(**asked)))
            assert (got.status, label(got)) == (200, problem.value.encode())
            assert answer.endswith(got.body)
            (row,) = stand.rows
            is_fault = problem in (Problem.EMPTY, Problem.GARBLED)
            assert row.outcome is (Outcome.INVALID_OUTPUT if is_fault else Outcome.OK)
            assert (row.output_problem, row.code, row.attempts) == (problem.value, "", 1)
            assert problems(stand) == {("r1", problem.value): 1}
            assert stand.permits == 0

    run_virtually(main())


@pytest.mark.parametrize(("asked", "answer"), GOOD)
def test_a_good_whole_answer_passes_as_it_is(asked: dict[str, Any], answer: bytes) -> None:
    async def main() -> None:
        with stand_for(Engine([answer])) as stand:
            got = await stand.ask(post(chat(**asked)))
            assert (got.status, label(got)) == (200, None)
            assert (stand.rows[0].outcome, stand.rows[0].output_problem) == (Outcome.OK, "")
            assert problems(stand) == {}

    run_virtually(main())


@pytest.mark.parametrize("bad", [whole(""), whole("\x00\x01\x02\x03")])
def test_an_empty_or_garbled_answer_is_asked_for_once_more_elsewhere(bad: bytes) -> None:
    async def main() -> None:
        with stand_for({"r1": Engine([bad]), "r2": Engine([bad])}) as stand:
            one = (await stand.ask(post(chat()))).status, stand.rows[0].attempts, stand.rows[0].output_problem
            assert one[:2] == (200, 2)
            assert one[2] in ("output_empty", "output_garbled")
            stand.engines["r2"].script = lambda _: [whole("fine")]
            stand.engines["r1"].script = lambda _: [bad]
            before = len(problems(stand))
            got = [await stand.ask(post(chat())) for _ in range(4)]
            assert {(each.status, label(each)) for each in got} == {(200, None)}
            assert {row.outcome for row in stand.rows[1:]} == {Outcome.OK}
            assert {row.output_problem for row in stand.rows[1:]} == {""}
            assert len(problems(stand)) == before
            assert stand.permits == 0

    run_virtually(main())


def test_without_allowance_the_answer_is_given_as_it_is() -> None:
    async def main() -> None:
        path = PathConfig(retries=RetriesConfig(enabled=False))
        with stand_for({"r1": Engine([whole("")]), "r2": Engine([whole("")])}, path=path) as stand:
            got = await stand.ask(post(chat()))
            assert (got.status, label(got)) == (200, b"output_empty")
            assert (stand.rows[0].attempts, stand.rows[0].refused) == (1, Reason.RETRY_ALLOWANCE)
            assert stand.rows[0].outcome is Outcome.INVALID_OUTPUT

    run_virtually(main())


@pytest.mark.parametrize("action", [Action.STOP, Action.DEGRADE])
def test_a_bad_answer_may_become_an_error(action: Action) -> None:
    async def main() -> None:
        with stand_for(Engine([whole("no, " * 500)]), output=OutputConfig(repetitive=action)) as stand:
            got = await stand.ask(post(chat()))
            assert (got.status, got.error["code"], label(got)) == (502, "output_repetitive", b"output_repetitive")
            assert "again and again" in got.error["message"]
            (row,) = stand.rows
            assert (row.outcome, row.code) == (Outcome.INVALID_OUTPUT, "output_repetitive")
            assert (row.output_problem, row.attempts) == ("output_repetitive", 1)

    run_virtually(main())


def test_where_a_bad_answer_degrades_a_stored_one_stands_in() -> None:
    async def main() -> None:
        config = OutputConfig(format=Action.DEGRADE)
        with stand_for(Engine([whole('{"a": 1}')]), output=config, is_cache_enabled=True) as stand:
            good = await stand.ask(post(chat(**JSON_MODE)))
            stand.engines["r1"].script = lambda _: [whole("no JSON")]
            got = await stand.ask(post(chat(**JSON_MODE)))
            assert (got.status, got.headers[b"x-tidegate-degraded"]) == (200, b"cache")
            assert got.body == good.body
            row = stand.rows[-1]
            assert (row.outcome, row.degraded, row.output_problem) == (Outcome.INVALID_OUTPUT, "cache", "")
            assert problems(stand) == {("r1", "output_format"): 1}
            assert stand.permits == 0

    run_virtually(main())


def test_an_answer_at_its_token_bound_is_never_more_than_marked() -> None:
    async def main() -> None:
        config = OutputConfig(truncated=Action.STOP, faults=tuple(Problem))
        with stand_for(Engine([whole("half of", "length")]), output=config) as stand:
            got = await stand.ask(post(chat()))
            assert (got.status, label(got)) == (200, b"output_truncated")
            assert stand.rows[0].outcome is Outcome.OK

    run_virtually(main())


def test_one_model_may_differ_and_a_reload_changes_it() -> None:
    async def main() -> None:
        off = {"m": OutputConfig(enabled=False)}
        with stand_for(Engine([whole("")]), outputs=off) as stand:
            assert label(await stand.ask(post(chat()))) is None
            stand.reload(
                ["r1"],
                Endpoint(name="r1", host="127.0.0.1", port=9000),
                outputs={"m": OutputConfig(wants_json=True, empty=Action.STOP)},
            )
            assert (await stand.ask(post(chat()))).error["code"] == "output_empty"
            stand.engines["r1"].script = lambda _: [whole("no JSON")]
            assert label(await stand.ask(post(chat()))) == b"output_format"

    run_virtually(main())


def test_embeddings_are_not_looked_into() -> None:
    async def main() -> None:
        with stand_for(Engine([json_answer({"data": []})])) as stand:
            got = await stand.ask(post({"model": "m", "input": "x"}, "/v1/embeddings"))
            assert (got.status, label(got)) == (200, None)

    run_virtually(main())


# ---- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "steps", "problem"),
    [
        ({}, stream(), Problem.EMPTY),
        ({}, stream(*["no, "] * 600), Problem.REPETITIVE),
        ({}, stream("a\ufffd\ufffd\ufffd"), Problem.GARBLED),
        ({}, stream("some", reason="length"), Problem.TRUNCATED),
        ({}, [STREAM_HEAD, chunk(event("some")) + STREAM_END], Problem.TRUNCATED),
        ({}, [STREAM_HEAD, chunk(b"data: {nonsense\n\n"), chunk(DONE) + STREAM_END], Problem.GARBLED),
        (JSON_MODE, stream("Sure", "!"), Problem.FORMAT),
        (JSON_MODE, stream('{"a', '": 1'), Problem.TRUNCATED),
        ({"guided_json": SCHEMA}, stream('{"b', '": 1}'), Problem.FORMAT),
    ],
)
def test_a_bad_stream_keeps_its_bytes_and_is_counted(
    asked: dict[str, Any], steps: list[Step], problem: Problem
) -> None:
    async def main() -> None:
        sent = b"".join(step for step in steps if isinstance(step, bytes))
        with stand_for(Engine(steps)) as stand:
            got = await stand.ask(post(chat(stream=True, **asked)))
            assert sent.count(b"data: ") == got.body.count(b"data: ")
            assert b"x-tidegate" not in got.body
            (row,) = stand.rows
            is_fault = problem in (Problem.EMPTY, Problem.GARBLED)
            assert row.outcome is (Outcome.INVALID_OUTPUT if is_fault else Outcome.OK)
            assert (row.output_problem, row.code, row.attempts) == (problem.value, "", 1)
            assert problems(stand) == {("r1", problem.value): 1}

    run_virtually(main())


def test_a_good_stream_is_as_it_was() -> None:
    async def main() -> None:
        with stand_for(Engine(stream(*(f"word {n} " for n in range(100))))) as stand:
            await stand.ask(post(chat(stream=True)))
            assert (stand.rows[0].outcome, stand.rows[0].output_problem) == (Outcome.OK, "")

    run_virtually(main())


def test_a_loop_is_stopped_the_engine_told_and_the_slot_free() -> None:
    async def main() -> None:
        steps: list[Step] = [STREAM_HEAD, *[each for _ in range(5000) for each in (0.01, chunk(event("no, ")))]]
        engine = Engine(steps)
        with stand_for(engine, output=OutputConfig(repetitive=Action.STOP)) as stand:
            got = await stand.ask(post(chat(stream=True)))
            events = got.body.split(b"\n\n")
            assert json.loads(events[-2].removeprefix(b"data: "))["error"]["code"] == "output_repetitive"
            assert b"[DONE]" not in got.body
            assert got.body.count(b"no, ") < 420
            await stand.until(lambda: engine.left == 1)
            (row,) = stand.rows
            assert (row.outcome, row.code, row.status) == (Outcome.INVALID_OUTPUT, "output_repetitive", 200)
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


@pytest.mark.parametrize("steps", [stream(), [STREAM_HEAD, chunk(event("")) + STREAM_END]])
def test_a_stream_that_is_found_bad_at_its_end_ends_with_the_error_not_with_done(steps: list[Step]) -> None:
    async def main() -> None:
        config = OutputConfig(empty=Action.STOP, truncated=Action.STOP)
        with stand_for(Engine(steps), output=config) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert b"[DONE]" not in got.body
            code = json.loads(got.body.split(b"\n\n")[-2].removeprefix(b"data: "))["error"]["code"]
            assert code in ("output_empty", "output_truncated")
            assert (stand.rows[0].outcome, stand.rows[0].code) == (Outcome.INVALID_OUTPUT, code)
            assert stand.permits == 0

    run_virtually(main())


def test_a_comment_tells_clients_that_want_to_know() -> None:
    async def main() -> None:
        with stand_for(Engine(stream()), output=OutputConfig(comments=True)) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert got.body.endswith(DONE + b": x-tidegate-output: output_empty\n\n")
        unended: list[Step] = [STREAM_HEAD, chunk(event("a") + b"data: [DONE]") + STREAM_END]
        with stand_for(Engine(unended), output=OutputConfig(comments=True, loop_characters=64)) as stand:
            assert (await stand.ask(post(chat(stream=True)))).body.endswith(b"data: [DONE]")

    run_virtually(main())


def test_streams_that_are_not_to_be_looked_into_are_not_unless_json_is_wanted() -> None:
    async def main() -> None:
        with stand_for(Engine(stream()), output=OutputConfig(streams=False)) as stand:
            await stand.ask(post(chat(stream=True)))
            await stand.ask(post(chat(stream=True, **JSON_MODE)))
            assert [row.output_problem for row in stand.rows] == ["", "output_empty"]

    run_virtually(main())


def test_what_a_client_leaves_behind_is_still_counted() -> None:
    async def main() -> None:
        steps: list[Step] = [STREAM_HEAD, *[chunk(event("no, "))] * 600, 60.0]
        with stand_for(Engine(steps)) as stand:
            client = stand.client()
            client.send(post(chat(stream=True)))
            await stand.until(lambda: client.raw.count(b"no, ") == 600)
            assert client.transport is not None
            client.transport.abort()
            await stand.until(lambda: bool(stand.rows))
            assert (stand.rows[0].outcome, stand.rows[0].output_problem) == (Outcome.CLIENT_LEFT, "output_repetitive")

    run_virtually(main())


# ---- the watch itself ---------------------------------------------------------------------------


def watched(data: bytes, sizes: list[int], now_s: float = 0.0) -> Problem | None:
    watch, at, now = Watch(USUAL, 0.0), 0, 0.0
    for size in [*sizes, len(data)]:
        if at < len(data):
            watch.take(data[at : at + size], now)
        at += size
        now += now_s
    found = watch.end()
    return None if found is None else found.problem


STREAMS = [
    b"".join(step for step in [*map(event, f"Word {0} " * 3), ended(), DONE]),
    b"".join([*[event("no, ")] * 400, ended(), DONE]),
    b"".join([event("a\ufffd\ufffd\ufffd"), ended(), DONE]).replace(b"\n", b"\r\n"),
    b"".join([*map(event, "half of it")]),
    b": ping\n\n" + ended() + DONE,
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STREAMS), st.lists(st.integers(1, 300), max_size=40), st.sampled_from([0.0, 0.1, 1.0]))
def test_where_reads_split_a_stream_makes_no_difference(data: bytes, sizes: list[int], now_s: float) -> None:
    assert watched(data, sizes, now_s) is watched(data, [])


def test_it_looks_every_32_reads_or_quarter_of_a_second_and_keeps_little() -> None:
    watch = Watch(USUAL, 0.0)
    for _ in range(READS - 1):
        watch.take(event("x"), 0.0)
    assert len(watch._reads) == READS - 1
    watch.take(event("x"), 0.0)
    assert watch._reads == []
    watch.take(event("x"), 0.1)
    assert len(watch._reads) == 1
    watch.take(event("x"), 0.3)
    assert watch._reads == []
    watch.take(b"data: " + b"x" * LARGE_BYTES, 0.3)
    assert watch._reads == []
    for _ in range(MOST_BYTES // LARGE_BYTES + 1):
        watch.take(b"x" * LARGE_BYTES, 0.3)
    assert len(watch._rest) <= MOST_BYTES


def test_an_answer_of_several_choices_is_judged_by_choice() -> None:
    def part(index: int, text: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": index, "text": text}]}).encode() + b"\n\n"

    watch = Watch(USUAL, 0.0)
    for n in range(600):
        watch.take(part(0, f"{n} "), 0.0)
        watch.take(part(1, "no, "), 0.0)
    found = watch.end()
    assert found is not None
    assert found.problem is Problem.REPETITIVE


def test_another_attempt_goes_on_with_the_answer_not_with_half_an_event() -> None:
    watch = Watch(USUAL, 0.0)
    watch.take(event("one ") + event("two")[:20], 0.0)
    watch.resume()
    watch.take(event("two"), 0.0)
    watch.take(ended() + DONE, 0.0)
    assert watch.finding is None
    assert watch.outcome is Outcome.OK
    assert (watch.code, watch.trailer()) == ("", b"")


def test_a_found_stream_is_not_looked_into_any_more() -> None:
    watch = Watch(USUAL, 0.0)
    watch.take(b"data: {\n\n" * READS, 1.0)
    assert watch.finding is not None
    watch.take(event("x"), 2.0)
    watch.resume()
    assert watch._reads == []


@pytest.mark.parametrize("is_chat", [True, False])
def test_of_a_very_long_answer_the_end_is_looked_at(is_chat: bool) -> None:
    def answer(text: str) -> bytes:
        choice = {"message": {"content": text}} if is_chat else {"text": text}
        return json.dumps({"choices": [{"index": 0, "finish_reason": "stop", **choice}]}).encode()

    many = " ".join(str(n) for n in range(40_000))
    assert whole_finding(USUAL, answer(many)) is None
    assert whole_finding(USUAL, answer("no, " * 1000 + many)) is None
    found = whole_finding(USUAL, answer(many + " no," * 1000))
    assert found is not None
    assert found.problem is Problem.REPETITIVE
    nothing = b'{"choices": [{"index": 0, "filler": "%b"}]}' % (b"x" * 100_000)
    empty = whole_finding(USUAL, nothing)
    assert empty is not None
    assert empty.problem is Problem.EMPTY


def test_what_a_request_asks_for() -> None:
    def fields(**more: Any) -> Expected:
        return expected_of(USUAL, Body(json.dumps(chat(**more)).encode()).fields)

    assert fields() is USUAL
    assert fields(stop="x").may_be_empty
    assert not fields(stop=None).may_be_empty
    assert fields(suffix="}").may_be_empty
    assert not fields(suffix="").may_be_empty
    assert fields(**JSON_MODE).is_json
    assert not fields(response_format=None).is_json
    assert whole_finding(USUAL, b'{"choices": [{"text": "fine", "finish_reason": "stop"}]}') is None
