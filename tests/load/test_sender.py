"""Sending, on a virtual clock, to a server in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.load.asks_of_a_test import Even, Failing, ask
from tests.load.scripted_server import CLOSE, ScriptedServer, Step, event, one, refused, stream, words
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.link import Link
from tidegate.load.sample import Sample
from tidegate.testing.openai_shapes import error
from tidegate.testing.openai_shapes import whole as whole_answer
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.requests import Incoming


def played(server: ScriptedServer, asks: Iterator[Ask], duration_s: float) -> list[Sample]:
    async def main() -> list[Sample]:
        sender, samples = server.sender(), list[Sample]()
        await sender.open_loop(asks, asyncio.get_running_loop().time(), duration_s, samples.append, "p")
        assert sender.in_flight == 0
        assert sender.sent == len(samples)
        await sender.close()
        return samples

    return run_virtually(main())


def test_asks_are_sent_when_they_are_due_although_no_answer_comes() -> None:
    server = ScriptedServer(lambda number, _: words(2, 5.0) if number < 50 else words(2, 0.001))
    samples = played(server, Even(100).asks(1), 1.0)
    assert len(samples) == 100
    assert {sample.outcome for sample in samples} == {ClientOutcome.OK}
    assert max(sample.lag_s for sample in samples) <= 0.0011
    assert [sample.index for sample in samples[:50]] == [*range(50, 100)]


def test_a_stall_is_seen_from_the_schedule_which_users_who_wait_would_hide() -> None:
    """Coordinated omission: a server stands still for a second, once."""

    def run(use_loop: str) -> list[Sample]:
        async def main() -> list[Sample]:
            loop = asyncio.get_running_loop()
            began, samples = loop.time(), list[Sample]()

            def script(number: int, request: Incoming) -> list[Step]:
                at = loop.time() - began
                return words(1, max(0.01, 2.01 - at) if 1.0 <= at < 2.0 else 0.01)

            sender = ScriptedServer(script).sender()
            if use_loop == "open":
                await sender.open_loop(Even(100).asks(1), began, 3.0, samples.append)
            else:
                await sender.closed_loop(Even(100).asks(1), 1, 3.0, None, samples.append)
            await sender.close()
            return samples

        return run_virtually(main())

    opened, closed = run("open"), run("closed")
    assert max(sample.lag_s for sample in opened) <= 0.0011
    slow = sorted(sample.scheduled_e2e_s for sample in opened if sample.scheduled_e2e_s > 0.1)
    # A third of the time stood still: so much of the traffic met it, evenly up to a whole second.
    assert len(slow) == pytest.approx(90, abs=2)
    assert slow[len(slow) // 2] == pytest.approx(0.55, abs=0.03)
    # One user met it once, and asked nothing in the meantime.
    assert sum(sample.scheduled_e2e_s > 0.1 for sample in closed) == 1


def test_a_generator_that_is_late_counts_the_wait_from_the_schedule() -> None:
    def asks() -> Iterator[Ask]:
        yield ask(0, due_s=0.0)
        yield ask(1, due_s=0.1)

    async def main() -> list[Sample]:
        loop = asyncio.get_running_loop()
        sender, samples = ScriptedServer(lambda *_: words(1)).sender(), list[Sample]()
        # It begins half a second after it should have.
        await sender.open_loop(asks(), loop.time() - 0.5, 9.0, samples.append)
        await sender.close()
        return samples

    first, second = run_virtually(main())
    assert first.lag_s == pytest.approx(0.5, abs=0.002)
    assert second.lag_s == pytest.approx(0.4, abs=0.002)
    assert first.scheduled_e2e_s == pytest.approx(first.e2e_s + 0.5, abs=0.002)


def test_what_is_due_after_the_phase_is_not_sent_and_what_runs_is_waited_for() -> None:
    server = ScriptedServer(lambda *_: words(2, 30.0))
    samples = played(server, Even(10).asks(1), 0.5)
    assert len(server.requests) == len(samples) == 5
    assert {sample.outcome for sample in samples} == {ClientOutcome.OK}


def test_connections_are_kept_and_reused() -> None:
    server = ScriptedServer(lambda *_: words(2, 0.001))
    samples = played(server, Even(10).asks(1), 1.0)
    assert len(server.connections) == 1
    assert [sample.is_reused for sample in samples] == [False] + [True] * 9
    assert {sample.worker for sample in samples} == {3}
    assert {(sample.phase, sample.target) for sample in samples} == {("p", "t")}


def test_the_request_has_model_headers_and_body() -> None:
    server = ScriptedServer(lambda *_: words(1))
    played(server, iter([ask(0, headers=(("X-Request-Id", "r1"), ("Authorization", "Bearer other")))]), 1.0)
    request = server.requests[0]
    assert request.target == b"/v1/chat/completions"
    assert request.body.startswith(b'{"model":"m","messages": [')
    assert request.fields[b"authorization"] == b"Bearer other"
    assert request.fields[b"x-request-id"] == b"r1"
    assert request.fields[b"host"] == b"server:8000"


def test_a_request_that_meets_a_closed_connection_is_sent_again_and_stays_one_sample() -> None:
    def script(number: int, request: Incoming) -> list[Step]:
        return [(0.0, CLOSE)] if number == 1 else words(2)

    server = ScriptedServer(script)
    samples = played(server, Even(1).asks(1), 3.0)
    assert [sample.outcome for sample in samples] == [ClientOutcome.OK] * 3
    assert [sample.index for sample in samples] == [0, 1, 2]
    assert len(server.requests) == 4
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    ("steps", "is_late"),
    [
        ([(0.0, b"HTTP/1.1 200"), (0.0, CLOSE)], "a byte of the answer came"),
        ([(3.0, CLOSE)], "the server had it for three seconds"),
    ],
)
def test_a_request_that_may_have_been_taken_is_not_sent_again(steps: list[Step], is_late: str) -> None:
    server = ScriptedServer(lambda number, _: steps if number == 1 else words(2))
    samples = played(server, Even(1).asks(1), 2.0)
    assert [sample.outcome for sample in samples] == [ClientOutcome.OK, ClientOutcome.BROKEN], is_late
    assert samples[1].code == "closed"
    assert len(server.requests) == 2


def test_a_first_connection_that_ends_at_once_is_broken_and_a_resent_one_too() -> None:
    server = ScriptedServer(lambda number, _: [(0.0, CLOSE)] if number else words(1))
    samples = played(server, Even(1).asks(1), 2.0)
    assert [sample.outcome for sample in samples] == [ClientOutcome.OK, ClientOutcome.BROKEN]
    assert len(server.requests) == 3


def test_a_client_leaves_when_its_patience_is_over() -> None:
    server = ScriptedServer(lambda *_: stream((0.5, event("a")), (60.0, event("b"))))
    sample = played(server, iter([ask(0, patience_s=2.0)]), 9.0)[0]
    assert (sample.outcome, sample.code) == (ClientOutcome.TIMEOUT, "patience")
    assert sample.e2e_s == pytest.approx(2.05, abs=0.06)
    assert sample.chunks == 1
    assert sample.ttft_s == pytest.approx(0.5)
    assert server.connections[0].transport is None


def test_it_waits_for_a_connection_no_longer_than_for_an_answer() -> None:
    server = ScriptedServer(lambda *_: words(1), connect_s=10.0)

    async def main() -> tuple[Sample, Sample]:
        sender = server.sender()
        first = await sender.ask(ask(0, patience_s=1.0))
        await asyncio.sleep(20.0)
        second = await sender.ask(ask(1, patience_s=1.0))
        await sender.close()
        return first, second

    first, second = run_virtually(main())
    assert first.outcome is ClientOutcome.TIMEOUT
    # The connection came after its request had gone, and serves the next one.
    assert second.outcome is ClientOutcome.OK
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        (ConnectionRefusedError(111, "refused"), ClientOutcome.REFUSED, "ConnectionRefusedError"),
        (OSError(24, "too many open files"), ClientOutcome.UNSENT, "EMFILE"),
        (OSError(99, "no port left"), ClientOutcome.UNSENT, "EADDRNOTAVAIL"),
    ],
)
def test_no_connection_is_told_apart_from_no_socket_left(problem: OSError, outcome: ClientOutcome, code: str) -> None:
    async def dial(make: Callable[[], Link]) -> Link:
        raise problem

    async def main() -> Sample:
        sender = ScriptedServer(lambda *_: []).sender(dial)
        return await sender.ask(ask())

    sample = run_virtually(main())
    assert (sample.outcome, sample.code) == (outcome, code)


def test_a_stopped_run_tells_what_was_due_and_waits_for_what_runs() -> None:
    server = ScriptedServer(lambda number, _: words(1, 2.0) if number % 2 else words(1, 60.0))

    async def main() -> list[Sample]:
        loop = asyncio.get_running_loop()
        sender, samples = server.sender(), list[Sample]()
        loop.call_later(1.0, sender.stop)
        await sender.open_loop(Even(4).asks(1), loop.time(), 60.0, samples.append)
        assert loop.time() == pytest.approx(1006.0, abs=0.01)
        await sender.close()
        return samples

    samples = run_virtually(main())
    assert Counter(sample.code or sample.outcome for sample in samples) == {"ok": 2, "run_ended": 2}
    assert {sample.outcome for sample in samples if sample.code} == {ClientOutcome.TIMEOUT}


def test_what_was_due_and_could_not_be_sent_is_told_as_unsent() -> None:
    async def main() -> list[Sample]:
        loop, held_s = asyncio.get_running_loop(), [0.0]
        clock = lambda: loop.time() + held_s[0]  # noqa: E731 - two words
        sender, samples = ScriptedServer(lambda *_: words(1)).sender(clock=clock), list[Sample]()

        def stop_late() -> None:
            # Two asks become due while the loop is held.
            held_s[0] = 0.2
            sender.stop()

        loop.call_at(1000.15, stop_late)
        await sender.open_loop(Even(10).asks(1), loop.time(), 60.0, samples.append)
        await sender.close()
        return samples

    samples = run_virtually(main())
    assert [sample.outcome for sample in samples if sample.code == "run_ended"] == [ClientOutcome.UNSENT] * 2
    assert [(sample.index, sample.sent_at) for sample in samples if sample.code] == [(2, 0.0), (3, 0.0)]


def test_users_ask_again_when_they_were_answered() -> None:
    server = ScriptedServer(lambda *_: words(1, 0.1))

    async def main() -> list[Sample]:
        sender, samples = server.sender(), list[Sample]()
        await sender.closed_loop(Even(1).asks(1), 3, 1.0, None, samples.append, "c")
        await sender.close()
        return samples

    samples = run_virtually(main())
    assert len(samples) == pytest.approx(30, abs=3)
    assert len(server.connections) == 3
    assert sorted(sample.index for sample in samples) == [*range(len(samples))]
    assert {sample.lag_s for sample in samples} == {0.0}


def test_a_closed_loop_ends_after_its_count() -> None:
    async def main() -> list[Sample]:
        sender, samples = ScriptedServer(lambda *_: words(1)).sender(), list[Sample]()
        await sender.closed_loop(Even(1).asks(1), 4, 100.0, 10, samples.append)
        await sender.close()
        return samples

    assert sorted(sample.index for sample in run_virtually(main())) == [*range(10)]


@pytest.mark.parametrize(
    ("lines", "pause_s"),
    [
        (b"", 1.0),
        (b"retry-after: 3\r\n", 3.0),
        (b"retry-after: 3\r\nretry-after-ms: 400\r\n", 0.4),
        (b"retry-after: 600\r\n", 10.0),
        (b"retry-after: Tue, 01 Dec 2026 05:00:00 GMT\r\n", 1.0),
    ],
)
def test_a_user_who_is_refused_comes_back_when_it_was_told(lines: bytes, pause_s: float) -> None:
    answer = whole_answer(b"429 Too Many Requests", error("busy"), lines)
    server = ScriptedServer(lambda *_: [(0.0, answer)])

    async def main() -> list[Sample]:
        sender, samples = server.sender(), list[Sample]()
        await sender.closed_loop(Even(1).asks(1), 1, 30.0, 3, samples.append)
        await sender.close()
        return samples

    first, second, third = run_virtually(main())
    assert {each.outcome for each in (first, second, third)} == {ClientOutcome.SHED}
    assert second.sent_at - first.ended_at == pytest.approx(pause_s, abs=0.01)
    assert third.sent_at - second.ended_at == pytest.approx(pause_s, abs=0.01)


def test_users_of_a_dead_service_do_not_ask_as_fast_as_they_can() -> None:
    async def dial(make: Callable[[], Link]) -> Link:
        raise ConnectionRefusedError

    async def main() -> list[Sample]:
        sender, samples = ScriptedServer(lambda *_: []).sender(dial), list[Sample]()
        await sender.closed_loop(Even(1).asks(1), 2, 1.0, None, samples.append)
        return samples

    samples = run_virtually(main())
    assert {sample.outcome for sample in samples} == {ClientOutcome.REFUSED}
    assert len(samples) == pytest.approx(20, abs=2)


@pytest.mark.parametrize("users", [None, 1])
def test_an_ask_that_cannot_be_made_ends_the_phase_with_its_error(users: int | None) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        sender, samples = ScriptedServer(lambda *_: words(1)).sender(), list[Sample]()
        try:
            if users is None:
                await sender.open_loop(Failing().asks(7), loop.time(), 9.0, samples.append)
            else:
                await sender.closed_loop(Failing().asks(7), users, 9.0, None, samples.append)
        finally:
            await sender.close()

    with pytest.raises(LookupError, match="seed 7"):
        run_virtually(main())


@pytest.mark.parametrize("users", [None, 1])
def test_a_sink_that_fails_ends_the_phase_with_its_error(users: int | None) -> None:
    def sink(sample: Sample) -> None:
        raise ValueError(f"sample {sample.index}")

    async def main() -> None:
        sender = ScriptedServer(lambda *_: words(1)).sender()
        try:
            if users is None:
                await sender.open_loop(Even(10).asks(1), asyncio.get_running_loop().time(), 9.0, sink)
            else:
                await sender.closed_loop(Even(10).asks(1), users, 9.0, None, sink)
        finally:
            await sender.close()

    with pytest.raises(ValueError, match="sample 0"):
        run_virtually(main())


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    late = [*words(1), (0.1, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]
    server = ScriptedServer(lambda *_: late)
    samples = played(server, Even(1).asks(1), 2.0)
    assert [sample.outcome for sample in samples] == [ClientOutcome.OK] * 2
    assert len(server.connections) == 2


def test_a_connection_that_says_close_is_not_used_again() -> None:
    body = b'{"choices":[{"message":{"content":"x"}}]}'
    answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    server = ScriptedServer(lambda *_: [(0.0, answer)])
    assert [sample.is_reused for sample in played(server, Even(1).asks(1), 2.0)] == [False, False]


def test_an_answer_may_end_with_its_connection() -> None:
    body = b'{"choices":[{"message":{"content":"x"}}]}'
    sample = run_virtually(one(lambda *_: [(0.0, b"HTTP/1.1 200 OK\r\n\r\n" + body), (0.1, CLOSE)], stream=False))
    assert (sample.outcome, sample.chunks) == (ClientOutcome.OK, 0)


def test_what_is_no_http_is_broken() -> None:
    sample = run_virtually(one(lambda *_: [(0.0, b"\x16\x03\x01 no HTTP\r\n\r\n")]))
    assert (sample.outcome, sample.code) == (ClientOutcome.BROKEN, "ProtocolError")


def test_headers_of_the_gateway_are_in_the_sample() -> None:
    lines = (
        b"x-tidegate-degraded: model:small\r\nx-tidegate-queue-ms: 250\r\nx-tidegate-replica: r2\r\n"
        b"x-tidegate-attempts: 2\r\n"
    )
    sample = run_virtually(one(lambda *_: stream((0.1, event("a")), lines=lines)))
    assert sample.outcome is ClientOutcome.DEGRADED
    assert (sample.degraded, sample.queue_s, sample.replica, sample.attempts) == ("model:small", 0.25, "r2", 2)


def test_a_refusal_is_told_with_its_status_and_code() -> None:
    body = b'{"error":{"message":"m","type":"rate_limit_error","param":null,"code":"quota"}}'
    sample = run_virtually(one(lambda *_: refused(b"429 Too Many Requests", body)))
    assert (sample.outcome, sample.status, sample.code) == (ClientOutcome.SHED, 429, "quota")
    other = run_virtually(one(lambda *_: refused(b"500 Broken", error("it broke"))))
    assert (other.outcome, other.code) == (ClientOutcome.ERROR, "server_error")


@pytest.mark.parametrize(
    ("data", "outcome", "code"),
    [
        (b'data: {"error":{"message":"m","code":"engine_failed"}}\n\n', ClientOutcome.ERROR, "engine_failed"),
        (b'data: {"error":{"message":"m","code":"queue_timeout"}}\n\n', ClientOutcome.SHED, "queue_timeout"),
        (b'data: {"error":"it broke"}\n\n', ClientOutcome.ERROR, "error"),
        (b'event: error\ndata: {"no":"shape"}\n\n', ClientOutcome.ERROR, "error_event"),
        (b"event: error\ndata: no JSON\n\n", ClientOutcome.ERROR, "error_event"),
        (b'data: {"choices":[{"delta":{"content":"x"}}]\n\n', ClientOutcome.ABNORMAL, "output_garbled"),
    ],
)
def test_what_goes_wrong_in_a_stream_is_told_as_the_stream_says_it(
    data: bytes, outcome: ClientOutcome, code: str
) -> None:
    steps = stream((0.1, event("a")), (0.1, data))
    sample = run_virtually(one(lambda *_: steps, keeps_text=True))
    assert (sample.status, sample.outcome, sample.code) == (200, outcome, code)


def test_closing_tells_what_was_under_way() -> None:
    async def main() -> Sample:
        sender = ScriptedServer(lambda *_: words(1, 60.0)).sender()
        waiting = asyncio.create_task(sender.ask(ask()))
        await asyncio.sleep(1.0)
        await sender.close()
        return await waiting

    sample = run_virtually(main())
    assert (sample.outcome, sample.code) == (ClientOutcome.TIMEOUT, "run_ended")


def test_asks_that_take_long_to_make_are_made_ahead() -> None:
    """A burst of asks that are due together is ready when it is due, where there was time before it."""

    def asks() -> Iterator[Ask]:
        for index in count():
            yield ask(index, due_s=1.0 + (index // 100) * 1.0)

    samples = played(ScriptedServer(lambda *_: words(1)), asks(), 3.0)
    assert len(samples) == 200
    assert max(sample.lag_s for sample in samples) <= 0.0011
