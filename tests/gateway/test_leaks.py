"""Whatever clients and engines do, nothing is left: no permit, no ticket, no open request, no cycle."""

from __future__ import annotations

import gc
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    WHOLE,
    ClientEnd,
    Engine,
    Stand,
    Step,
    chat,
    chunk,
    event,
    get,
    json_answer,
    post,
    stand_for,
)
from tidegate.gateway.call import Call
from tidegate.gateway.exchange import Exchange
from tidegate.gateway.settings import Timers
from tidegate.policy.job_accounts import JobsConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, Reading
from tidegate.policy.timeouts import PhaseConfig, TimeoutsConfig
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.requests import Incoming

PARTS: list[Step] = [
    WHOLE,
    WHOLE[:-4],
    WHOLE[:10],
    STREAM_HEAD,
    STREAM_HEAD + chunk(event("a")),
    chunk(event("b")),
    chunk(event("c")[:11]),
    chunk(b": ping\n\n"),
    chunk(b'data: {"error":{"message":"x"}}\n\n'),
    chunk(DONE) + STREAM_END,
    STREAM_END,
    json_answer({"error": {"message": "busy"}}, "503 Busy"),
    json_answer({}, "500 Broken"),
    b"nonsense\r\n\r\n",
    "close",
    "abort",
    0.05,
    0.5,
    4.0,
]
REQUESTS = [
    post(chat()),
    post(chat(stream=True)),
    post(chat(stream=True), headers="x-tidegate-deadline-ms: 700\r\n"),
    post(chat(n=3)),
    post(chat(), headers="x-stainless-read-timeout: 0.5\r\nx-request-id: same\r\n"),
    post({"model": "m", "prompt": "x" * 9000}, "/v1/completions"),
    post(b"no json"),
    post(chat(), headers="idempotency-key: a\r\n"),
    post(chat(stream=True), headers="idempotency-key: b\r\n"),
    post(chat(n=2), headers="idempotency-key: b\r\n"),
    post(chat(), headers="prefer: respond-async\r\n"),
    post(chat(stream=True), headers="prefer: respond-async, wait=1\r\nidempotency-key: c\r\n"),
    get("/v1/jobs"),
    get("/health"),
    get("/v1/files"),
    post(chat())[:-7],
    b"garbage\r\n\r\n",
]


def fixed(seconds: float) -> PhaseConfig:
    return PhaseConfig(floor_s=seconds, ceiling_s=seconds, default_s=seconds)


PATH = PathConfig(timeouts=TimeoutsConfig(first_byte=fixed(2.0), gap=fixed(1.0), total=fixed(6.0)))


class Chaos:
    """Engines and clients that do anything, by one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def script(self, _request: Incoming) -> list[Step]:
        if self.random.random() < 0.3:
            return [0.2, WHOLE]
        return self.random.choices(PARTS, k=self.random.randint(1, 6))

    async def act(self, stand: Stand, clients: list[ClientEnd]) -> None:
        dice = self.random.random()
        if dice < 0.45 or not clients:
            clients.append(stand.client())
            clients[-1].send(b"".join(self.random.choices(REQUESTS, k=self.random.randint(1, 3))))
        elif dice < 0.75:
            client = clients.pop(self.random.randrange(len(clients)))
            assert client.transport is not None
            self.random.choice([client.transport.close, client.transport.abort, client.transport.pause_reading])()
        elif dice < 0.85:
            engine = self.random.choice(list(stand.engines.values()))
            engine.refuses = not engine.refuses
            engine.dial_s = self.random.choice([0.0, 0.3, 7.0])
        elif dice < 0.95:
            name = self.random.choice(list(stand.engines))
            stand.driver.observe(name, Reading(at=stand.loop.time(), ready=self.random.random() < 0.7, running=0))
        due_at = stand.loop.time() + self.random.choice([0.0, 0.02, 0.3, 1.5])
        await stand.until(lambda: stand.loop.time() >= due_at)


def jobs_of(stand: Stand) -> dict[str, int]:
    return stand.gateway.jobs.view()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 64]))
def test_nothing_is_left_open_after_any_misbehaviour(seed: int, sequences: int) -> None:
    async def main() -> None:
        chaos = Chaos(seed)
        engines = {name: Engine(chaos.script) for name in ("a", "b")}
        capacity = Capacity(sequences=sequences)
        timers, jobs = Timers(heartbeat_s=1.0), JobsConfig(max_wait_s=10.0, max_offered=3, max_age_s=5.0)
        with stand_for(engines, path=PATH, capacity=capacity, timers=timers, jobs=jobs) as stand:
            clients: list[ClientEnd] = []
            for _ in range(40):
                await chaos.act(stand, clients)
            # Also of clients whose requests wait behind each other: jobs expire, so at some time there is none left.
            await stand.until(lambda: not stand.gateway.open_requests and not jobs_of(stand)["jobs"], within_s=200)
            await stand.until(lambda: stand.permits == 0)
            view = stand.path.view(stand.loop.time())
            assert (view["open_requests"], view["waiting"], stand.driver.waiting) == (0, 0, 0)
            assert len({row.id for row in stand.rows}) == len(stand.rows)
            offered = {request.id for request in stand.noted.offered}
            assert len([row for row in stand.rows if row.id in offered]) == len(stand.noted.offered)
            assert not any(jobs_of(stand).values())

    run_virtually(main())


def test_a_finished_request_is_freed_without_the_collector() -> None:
    async def main() -> None:
        engine = Engine([0.1, WHOLE])
        with stand_for(engine) as stand:
            client = stand.client()
            for body in (chat(), chat(stream=True), chat(model="nobody")):
                engine.script = lambda request: [0.1, WHOLE]
                client.send(post(body))
                await stand.until(lambda: not stand.gateway.open_requests and bool(client.answers))
                client.answers.clear()
            for key in ("a", "a", "b"):
                client.send(post(chat(), headers=f"idempotency-key: {key}\r\n"))
                await stand.until(lambda: not stand.gateway.open_requests and bool(client.answers))
                client.answers.clear()
            broken = stand.client()
            broken.send(post(chat()))
            await stand.until(lambda: stand.permits == 1)
            assert broken.transport is not None
            broken.transport.abort()
            await stand.until(lambda: stand.permits == 0)
            del broken
            assert not [each for each in gc.get_objects() if isinstance(each, Exchange | Call)]

    gc.collect()
    gc.disable()
    try:
        run_virtually(main())
    finally:
        gc.enable()
