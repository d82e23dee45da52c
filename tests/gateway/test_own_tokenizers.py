"""What a tokenizer file of an upstream changes for its requests. In memory and in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.gateway.fake_tokenizers import one_a_byte
from tests.gateway.stand import WHOLE, Engine, Stand, chat, json_answer, post, stand_for
from tidegate.gateway.settings import Endpoint
from tidegate.gateway.tokenizing_messages import Count, Counted, Question, Told
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.reading import Capacity
from tidegate.policy.token_source import TokenSource
from tidegate.testing.virtual_loop import run_virtually

COMPLETIONS = "/v1/completions"
CAPACITY = Capacity(kv_tokens=32768, slot_tokens=256, sequences=1, context_tokens=8192)
ENDPOINT = Endpoint(name="r1", host="h", port=1, kind="vllm", tokenizer="t", takes_token_ids=True)
COUNTED = json_answer({"choices": [{"text": "hi"}], "usage": {"prompt_tokens": 2500, "completion_tokens": 3}})
# About 3 000 tokens by its bytes.
LONG_TEXT = "word " * 2400


@dataclass
class ByteServer:
    """An engine whose tokens are bytes, and one more if it ``differs``."""

    differs: bool = False
    counted: int = 0

    async def token_ids(self, text: str) -> list[int] | None:
        return list(text.encode()) + [0] * self.differs

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        self.counted += 1
        return (len(body),)


def counts(tokens: int) -> Any:
    """Answers every count of more than the comparison's few bytes with ``tokens``."""

    def answer(question: Question) -> Told | None:
        if isinstance(question, Count) and len(question.body) > 1000:
            return Counted((tokens,), b"[5,6,7]" if question.wants_ids else None)
        return one_a_byte(question)

    return answer


@contextmanager
def stand(engine: Engine, tokens: int = 2500, after_s: float = 0.01, **changes: Any) -> Iterator[Stand]:
    """A stand whose upstream has a tokenizer that takes ``after_s`` to find ``tokens`` in any long prompt."""
    given: dict[str, Any] = {"endpoints": (ENDPOINT,), "capacity": CAPACITY, **changes}
    with stand_for(engine, **given) as made:
        made.counters["r1"] = ByteServer()
        made.tokenizers.answer, made.tokenizers.after_s = counts(tokens), after_s
        yield made


async def compared(at: Stand) -> None:
    """Wait until the tokenizer has been compared with the engine's."""
    await at.until(lambda: bool(at.logged))


def completion(prompt: object = LONG_TEXT, **fields: object) -> bytes:
    return post({"model": "m", "prompt": prompt, "max_tokens": 16, **fields}, COMPLETIONS)


def prompt_at(engine: Engine) -> object:
    return json.loads(engine.requests[-1].body)["prompt"]


# ---- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "service_class"), [(900, "interactive"), (1300, "long")])
def test_near_the_border_of_a_class_a_prompt_is_counted_before_it_is_decided(tokens: int, service_class: str) -> None:
    async def main() -> None:
        with stand(Engine([WHOLE]), tokens) as at:
            await compared(at)
            assert (await at.ask(post(chat(messages=[{"role": "user", "content": "x" * 4200}])))).status == 200
            row = at.rows[0]
            assert (row.service_class, row.counted_tokens) == (service_class, tokens)
            assert row.counted_by is TokenSource.TOKENIZER
            assert row.estimated_tokens == pytest.approx(1060, abs=10)
            assert (row.prompt_tokens, row.is_prompt_told) == (7, True)

    run_virtually(main())


@pytest.mark.parametrize("size", [3000, 6000])
def test_far_from_every_border_nothing_is_counted(size: int) -> None:
    async def main() -> None:
        with stand(Engine([WHOLE])) as at:
            await compared(at)
            before = len(at.tokenizers.counted)
            assert (await at.ask(post(chat(messages=[{"role": "user", "content": "x" * size}])))).status == 200
            assert len(at.tokenizers.counted) == before
            assert (at.rows[0].counted_tokens, at.rows[0].counted_by) == (None, TokenSource.ESTIMATE)

    run_virtually(main())


def test_where_a_count_decides_the_file_is_asked_and_no_engine() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine, 9000) as at:
            await compared(at)
            server = at.counters["r1"] = ByteServer()
            got = await at.ask(post(chat(messages=[{"role": "user", "content": "x" * 28_000}])))
            assert (got.status, got.error["code"]) == (400, "context_length_exceeded")
            assert "9000" in got.error["message"]
            assert (server.counted, engine.requests) == (0, [])

    run_virtually(main())


def test_where_a_count_decides_and_the_file_gives_none_the_engine_is_asked() -> None:
    async def main() -> None:
        with stand(Engine([WHOLE])) as at:
            await compared(at)
            at.tokenizers.answer = lambda _: Counted()
            got = await at.ask(post(chat(messages=[{"role": "user", "content": "x" * 28_000}])))
            assert (got.status, at.rows[0].counted_by) == (400, TokenSource.ENGINE)

    run_virtually(main())


def test_a_process_that_does_not_answer_in_time_leaves_the_estimate() -> None:
    async def main() -> None:
        with stand(Engine([WHOLE])) as at:
            await compared(at)
            at.tokenizers.after_s = 60.0
            assert (await at.ask(completion())).status == 200
            assert at.loop.time() < 1006
            assert (at.rows[0].counted_tokens, at.rows[0].estimated_tokens) == (None, 3000)

    run_virtually(main())


# ---- while it waits ------------------------------------------------------------------------------


async def second_waits(at: Stand, text: str = LONG_TEXT) -> Any:
    """The first runs for a second, and the second waits behind it; the second's client."""
    await compared(at)
    first, second = at.client(), at.client()
    first.send(post(chat()))
    second.send(post(chat(messages=[{"role": "user", "content": text}])))
    await at.until(lambda: bool(second.answers), within_s=10.0)
    return second.answers[0]


def test_a_request_that_waits_is_counted_meanwhile_and_placed_as_what_it_is() -> None:
    async def main() -> None:
        with stand(Engine([1.0, WHOLE]), 1000) as at:
            assert (await second_waits(at)).status == 200
            row = at.rows[1]
            assert (row.estimated_tokens, row.counted_tokens, row.reserved_slots) == (3008, 1000, 4)
            assert row.queued_at == row.arrived_at

    run_virtually(main())


def test_one_that_turns_out_never_to_fit_waits_no_longer() -> None:
    async def main() -> None:
        engine = Engine([1.0, WHOLE])
        with stand(engine, 9000) as at:
            got = await second_waits(at)
            assert (got.status, got.error["code"]) == (400, "context_length_exceeded")
            assert "9000" in got.error["message"]
            assert at.loop.time() < 1001.5
            row = at.rows[0]
            assert (row.refused, row.outcome, row.attempts) == (Reason.NEVER_FITS, None, 0)
            assert (row.prompt_tokens, row.estimated_tokens) == (9000, 3008)
            await at.until(lambda: len(at.rows) == 2)
            assert len(engine.requests) == 1

    run_virtually(main())


def test_a_count_that_comes_after_placement_goes_on_record_only() -> None:
    async def main() -> None:
        with stand(Engine([1.0, WHOLE]), 1000, after_s=1.5) as at:
            await asyncio.sleep(20)
            assert (await second_waits(at)).status == 200
            row = at.rows[1]
            assert (row.estimated_tokens, row.counted_tokens, row.reserved_slots) == (3008, 1000, 12)

    run_virtually(main())


def test_a_client_that_left_the_queue_is_counted_for_nobody() -> None:
    async def main() -> None:
        with stand(Engine([1.0, WHOLE]), 1000, after_s=0.5) as at:
            await asyncio.sleep(20)
            first, second = at.client(), at.client()
            first.send(post(chat()))
            second.send(post(chat(messages=[{"role": "user", "content": LONG_TEXT}])))
            await asyncio.sleep(0.1)
            assert second.transport is not None
            second.transport.close()
            await at.until(lambda: len(at.rows) == 2)
            assert {row.outcome for row in at.rows} == {Outcome.OK, Outcome.CLIENT_LEFT}

    run_virtually(main())


@pytest.mark.parametrize("text", ["short", "word " * 500])
def test_what_is_short_is_not_counted_while_it_waits(text: str) -> None:
    async def main() -> None:
        with stand(Engine([1.0, WHOLE])) as at:
            assert (await second_waits(at, text)).status == 200
            assert at.rows[1].counted_tokens is None

    run_virtually(main())


def test_an_engine_is_not_asked_about_one_that_waits() -> None:
    async def main() -> None:
        plain = replace(ENDPOINT, tokenizer=None)
        with stand(Engine([1.0, WHOLE]), endpoints=(plain,)) as at:
            server = at.counters["r1"] = ByteServer()
            at.logged.append("nothing to compare")
            assert (await second_waits(at)).status == 200
            assert (server.counted, at.rows[1].counted_tokens) == (0, None)

    run_virtually(main())


# ---- ids -----------------------------------------------------------------------------------------


def test_a_long_completion_reaches_the_engine_as_ids_and_the_rest_of_it_unchanged() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine) as at:
            await compared(at)
            assert (await at.ask(completion(user="ann", temperature=0.0))).status == 200
            assert json.loads(engine.requests[0].body) == {
                "model": "m",
                "prompt": [5, 6, 7],
                "max_tokens": 16,
                "user": "ann",
                "temperature": 0.0,
            }
            assert (at.rows[0].counted_tokens, at.rows[0].reserved_slots) == (2500, 10)

    run_virtually(main())


@pytest.mark.parametrize(
    "ask",
    [completion("short"), completion([LONG_TEXT]), completion([1] * 3000), post(chat(prompt=LONG_TEXT))],
)
def test_what_is_short_or_no_single_text_goes_as_it_came(ask: bytes) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine) as at:
            await compared(at)
            assert (await at.ask(ask)).status == 200
            assert ask.endswith(engine.requests[0].body)

    run_virtually(main())


def test_before_the_comparison_and_where_it_failed_the_text_goes_out() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine) as at:
            at.counters["r1"] = ByteServer(differs=True)
            assert (await at.ask(completion())).status == 200
            await compared(at)
            assert (await at.ask(completion())).status == 200
            assert [json.loads(each.body)["prompt"] for each in engine.requests] == [LONG_TEXT, LONG_TEXT]

    run_virtually(main())


def test_replicas_that_differ_from_each_other_all_get_the_text() -> None:
    async def main() -> None:
        engines = {"r1": Engine([COUNTED]), "r2": Engine([COUNTED])}
        both = (ENDPOINT, replace(ENDPOINT, name="r2"))
        with stand_for(engines, endpoints=both, capacity=CAPACITY) as at:
            at.counters.update(r1=ByteServer(differs=True), r2=ByteServer())
            at.tokenizers.answer = counts(2500)
            await at.until(lambda: len(at.logged) == 2)
            for _ in range(6):
                assert (await at.ask(completion())).status == 200
            sent = [*engines["r1"].requests, *engines["r2"].requests]
            assert {json.loads(each.body)["prompt"] for each in sent} == {LONG_TEXT}
            assert {row.counted_by for row in at.rows} == {TokenSource.ESTIMATE}

    run_virtually(main())


def test_a_retry_on_a_replica_without_ids_sends_the_text() -> None:
    async def main() -> None:
        engines = {"r1": Engine(["close"]), "r2": Engine([COUNTED])}
        both = (ENDPOINT, replace(ENDPOINT, name="r2", takes_token_ids=False))
        with stand_for(engines, endpoints=both, capacity=CAPACITY) as at:
            at.counters.update(r1=ByteServer(), r2=ByteServer())
            at.tokenizers.answer = counts(2500)
            await at.until(lambda: len(at.logged) == 2)
            for _ in range(4):
                assert (await at.ask(completion())).status == 200
            assert prompt_at(engines["r1"]) == [5, 6, 7]
            assert prompt_at(engines["r2"]) == LONG_TEXT

    run_virtually(main())


def test_a_replica_that_was_down_is_compared_again() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine) as at:
            await compared(at)
            at.gateway.note_reading("r1", is_ready=True)
            at.gateway.note_reading("r1", is_ready=False)
            at.counters["r1"] = ByteServer(differs=True)
            at.reload(["r1"], replace(ENDPOINT, port=2), capacity=CAPACITY)
            at.gateway.note_reading("r1", is_ready=True)
            await at.until(lambda: len(at.logged) == 2)
            assert (await at.ask(completion())).status == 200
            assert prompt_at(engine) == LONG_TEXT

    run_virtually(main())


# ---- the engine has the last word ----------------------------------------------------------------


def test_a_usage_that_contradicts_the_count_is_told_and_ends_counting_there() -> None:
    async def main() -> None:
        usage = json_answer({"choices": [], "usage": {"prompt_tokens": 2501, "completion_tokens": 3}})
        with stand(Engine([1.0, usage])) as at:
            await second_waits(at)
            assert any("counted 2500 tokens" in line and "reports 2501" in line for line in at.logged)
            counted = len(at.tokenizers.counted)
            await second_waits(at)
            assert len(at.tokenizers.counted) == counted
            assert at.rows[-1].counted_tokens is None

    run_virtually(main())


def test_a_usage_that_agrees_is_no_news() -> None:
    async def main() -> None:
        with stand(Engine([1.0, COUNTED])) as at:
            await second_waits(at)
            assert [line for line in at.logged if line.startswith("error")] == []
            assert (at.rows[1].prompt_tokens, at.rows[1].counted_tokens) == (2500, 2500)

    run_virtually(main())


def test_the_estimate_learns_from_a_usage_that_the_count_foretold() -> None:
    async def main() -> None:
        with stand(Engine([COUNTED])) as at:
            await compared(at)
            for _ in range(2):
                assert (await at.ask(completion())).status == 200
            # From 4 bytes a token a twentieth of the way to 12 002 ÷ 2 500.
            assert [row.estimated_tokens for row in at.rows] == [3000, 2970]

    run_virtually(main())


def test_ids_that_a_client_sent_are_its_own_count() -> None:
    async def main() -> None:
        with stand(Engine([WHOLE])) as at:
            assert (await at.ask(completion([1] * 3000))).status == 200
            assert (at.rows[0].counted_by, at.rows[0].estimated_tokens) == (TokenSource.CLIENT, 3000)

    run_virtually(main())
