"""A prompt that may be too long is counted before it is decided on. In memory and in virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from tests.gateway.stand import WHOLE, ClientEnd, Engine, Stand, chat, post, stand_for, stream_of
from tests.gateway.test_tally import Scripted
from tidegate.gateway.settings import Endpoint, Timers
from tidegate.policy.decisions import Reason
from tidegate.policy.idempotency import IdempotencyConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.reading import Capacity
from tidegate.testing.virtual_loop import run_virtually

CAPACITY = Capacity(kv_tokens=8192, slot_tokens=256, sequences=8, context_tokens=2048)
ENDPOINT = Endpoint(name="r1", host="h", port=1, kind="vllm")
# About 1 300 tokens by its bytes, which its digits make 5 200.
DIGITS = chat(messages=[{"role": "user", "content": "7 " * 2600}])


@contextmanager
def stand(engine: Engine, counter: Scripted, **changes: Any) -> Iterator[Stand]:
    """A stand whose only replica counts with ``counter``."""
    with stand_for(engine, endpoints=(ENDPOINT,), capacity=CAPACITY, **changes) as made:
        made.counters["r1"] = counter
        yield made


@pytest.mark.parametrize("stream", [True, False])
def test_a_prompt_that_is_longer_than_it_looks_is_refused_and_reaches_no_engine(stream: bool) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine, Scripted((5200,), after_s=0.1)) as at:
            got = await at.ask(post({**DIGITS, "stream": stream}))
            assert (got.status, got.error["code"]) == (400, "context_length_exceeded")
            assert "5200" in got.error["message"]
            assert got.headers[b"x-should-retry"] == b"false"
            assert (engine.requests, at.gateway.open_requests) == ([], 0)
            assert (at.rows[0].refused, at.rows[0].prompt_tokens) == (Reason.NEVER_FITS, 5200)

    run_virtually(main())


def test_a_prompt_that_fits_after_all_is_served_with_its_true_length() -> None:
    async def main() -> None:
        engine = Engine(stream_of("hi"))
        # 12 000 bytes look like 3 000 tokens; as one run of spaces they are far fewer.
        spaces = chat(stream=True, messages=[{"role": "user", "content": " " * 12_000 + "x"}])
        with stand(engine, Scripted((800,), after_s=0.1)) as at:
            assert (await at.ask(post(spaces))).status == 200
            assert (at.rows[0].reserved_slots, at.permits) == (4, 0)
        with stand(engine, Scripted(None)) as at:
            assert (await at.ask(post(spaces))).status == 400

    run_virtually(main())


@pytest.mark.parametrize(
    "body",
    [
        chat(),
        chat(messages=[{"role": "user", "content": "x" * 4000}]),
        {"model": "m", "prompt": [1] * 2000},
        chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x" * 6000}}]}]),
    ],
)
def test_what_is_far_from_the_border_exact_already_or_no_text_is_not_counted(body: dict[str, Any]) -> None:
    async def main() -> None:
        counter = Scripted((5,))
        with stand(Engine([WHOLE]), counter) as at:
            path = "/v1/completions" if "prompt" in body else "/v1/chat/completions"
            assert (await at.ask(post(body, path))).status == 200
            assert counter.asked == 0

    run_virtually(main())


@pytest.mark.parametrize("counter", [Scripted(OSError("gone")), Scripted(None), Scripted((9,), after_s=60.0)])
def test_without_a_count_the_estimate_has_to_do(counter: Scripted) -> None:
    async def main() -> None:
        with stand(Engine([WHOLE]), counter) as at:
            assert (await at.ask(post(DIGITS))).status == 200
            assert at.loop.time() < 1002.1

    run_virtually(main())


def test_an_adapter_that_breaks_costs_the_count_and_not_the_request() -> None:
    async def main() -> None:
        with stand(Engine([WHOLE]), Scripted(ZeroDivisionError("a bug"))) as at:
            bugs: list[object] = []
            at.loop.set_exception_handler(lambda _, context: bugs.append(context["exception"]))
            assert (await at.ask(post(DIGITS))).status == 200
            assert [type(bug) for bug in bugs] == [ZeroDivisionError]

    run_virtually(main())


def test_a_client_that_leaves_during_the_count_leaves_nothing() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand(engine, Scripted((100,), after_s=1.0)) as at:
            client = at.client()
            client.send(post(DIGITS))
            await at.until(lambda: at.gateway.open_requests == 1)
            assert client.transport is not None
            client.transport.close()
            await at.until(lambda: bool(at.rows))
            row = at.rows[0]
            assert (row.outcome, row.status, row.upstream, row.attempts) == (Outcome.CLIENT_LEFT, 0, "m", 0)
            assert (at.gateway.open_requests, at.permits, engine.requests) == (0, 0, [])
            await at.until(lambda: at.loop.time() > 1003)
            assert len(at.rows) == 1

    run_virtually(main())


def test_a_deadline_that_passes_during_the_count_ends_it() -> None:
    async def main() -> None:
        with stand(Engine([WHOLE]), Scripted((100,), after_s=60.0)) as at:
            got = await at.ask(post(DIGITS, headers="x-tidegate-deadline-ms: 500\r\n"))
            assert (got.status, got.error["code"]) == (408, "deadline_passed")
            assert at.loop.time() == pytest.approx(1000.5, abs=0.2)

    run_virtually(main())


def test_a_stream_hears_from_us_during_the_count_and_an_error_then_is_an_event() -> None:
    async def main() -> None:
        timers = Timers(heartbeat_s=0.5)
        with stand(Engine([WHOLE]), Scripted((5200,), after_s=1.2), timers=timers) as at:
            got = await at.ask(post({**DIGITS, "stream": True}))
            assert got.body.count(b": ") >= 1
            assert json.loads(got.body.rpartition(b"data: ")[2])["error"]["code"] == "context_length_exceeded"
            assert at.rows[0].refused_in_stream

    run_virtually(main())


def test_a_drain_decides_on_what_is_being_counted_and_finishes_it() -> None:
    async def main() -> None:
        with stand(Engine([0.5, WHOLE]), Scripted((100,), after_s=60.0)) as at:
            client = at.client()
            client.send(post(DIGITS))
            await at.until(lambda: at.gateway.open_requests == 1)
            at.gateway.drain()
            await at.gateway.emptied()
            await at.until(lambda: bool(client.answers))
            assert client.answers[0].status == 200
            assert at.loop.time() < 1001

    run_virtually(main())


def test_a_drain_refuses_what_is_being_counted_if_it_would_have_to_wait() -> None:
    async def main() -> None:
        with stand(Engine([0.5, WHOLE]), Scripted((100,), after_s=60.0)) as at:
            running, counted = at.client(), at.client()
            running.send(post(chat(n=8)))
            counted.send(post(DIGITS))
            await at.until(lambda: at.gateway.open_requests == 2)
            at.gateway.drain()
            await at.gateway.emptied()
            await at.until(lambda: bool(counted.answers) and bool(running.answers))
            assert (counted.answers[0].status, counted.answers[0].error["code"]) == (503, "shutting_down")
            assert running.answers[0].status == 200

    run_virtually(main())


def test_the_end_of_the_process_cuts_it_and_says_so() -> None:
    async def main() -> None:
        with stand(Engine([60.0, WHOLE]), Scripted((100,), after_s=60.0)) as at:
            client = at.client()
            client.send(post(DIGITS))
            await at.until(lambda: at.gateway.open_requests == 1)
            at.gateway.stop()
            await at.until(lambda: client.is_closed)
            assert (client.answers[0].status, client.answers[0].error["code"]) == (503, "shutdown")
            assert at.gateway.open_requests == 0

    run_virtually(main())


def test_the_next_request_on_the_connection_follows_the_counted_one() -> None:
    async def main() -> None:
        with stand(Engine([WHOLE]), Scripted((5200,), after_s=0.1)) as at:
            client = at.client()
            client.send(post(DIGITS) + post(chat()))
            await at.until(lambda: len(client.answers) == 2)
            assert [got.status for got in client.answers] == [400, 200]

    run_virtually(main())


def test_of_several_prompts_the_longest_counts() -> None:
    async def main() -> None:
        body = {"model": "m", "prompt": ["7 " * 2600, "8 " * 2600], "max_tokens": 16}
        with stand(Engine([WHOLE]), Scripted((1000, 2040), after_s=0.1)) as at:
            assert (await at.ask(post(body, "/v1/completions"))).status == 200
            assert at.rows[0].reserved_slots == 18

    run_virtually(main())


def test_calls_under_one_key_are_counted_once_and_all_may_leave_meanwhile() -> None:
    async def main() -> None:
        key = "idempotency-key: k\r\n"
        for leave in (False, True):
            engine, counter = Engine([WHOLE]), Scripted((800,), after_s=1.0)
            with stand(engine, counter, idempotency=IdempotencyConfig(orphan_s=0.0)) as at:
                clients = [at.client(), at.client()]
                for client in clients:
                    client.send(post(DIGITS, headers=key))
                await at.until(partial(has_begun, at))
                if leave:
                    for client in clients:
                        assert client.transport is not None
                        client.transport.abort()
                    await at.until(partial(is_idle, at))
                    assert {row.outcome for row in at.rows} == {Outcome.CLIENT_LEFT, None}
                else:
                    await at.until(partial(all_answered, clients))
                    assert [client.answers[0].status for client in clients] == [200, 200]
                assert (counter.asked, len(engine.requests)) == (1, 0 if leave else 1)

    run_virtually(main())


def has_begun(at: Stand) -> bool:
    return at.gateway.view()["keyed"] == {"running": 1, "kept": 0, "kept_bytes": 0}


def is_idle(at: Stand) -> bool:
    return not at.gateway.open_requests


def all_answered(clients: list[ClientEnd]) -> bool:
    return all(bool(client.answers) for client in clients)
