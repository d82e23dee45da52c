"""Two attempts at once: the first to answer is what the client gets, and the other engine is told to stop."""

from __future__ import annotations

import pytest

from tests.gateway.stand import (
    STREAM_HEAD,
    WHOLE,
    Engine,
    Stand,
    Step,
    chat,
    event,
    json_answer,
    post,
    stand_for,
    stream_of,
)
from tidegate.policy.hedging import HedgeConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.retries import RetriesConfig
from tidegate.policy.timeouts import PhaseConfig, TimeoutsConfig
from tidegate.testing.virtual_loop import run_virtually

PATH = PathConfig(
    retries=RetriesConfig(hedge=HedgeConfig(enabled=True, budget=0.5)),
    timeouts=TimeoutsConfig(first_byte=PhaseConfig(floor_s=20.0, default_s=20.0, ceiling_s=20.0)),
)
PROMPT = [0.2, *stream_of("hi")]


async def known(stand: Stand) -> None:
    """Both replicas answer after 0.2 s, often enough for that to be known."""
    for _ in range(40):
        assert (await stand.ask(post(chat(stream=True)))).status == 200


def pair() -> dict[str, Engine]:
    return {"a": Engine(PROMPT), "b": Engine(PROMPT)}


def late(stand: Stand, steps: list[Step], then: list[Step]) -> None:
    """From here on the first request to come runs into ``steps`` and the one beside it into ``then``."""
    scripts = [steps, then]
    for engine in stand.engines.values():
        engine.script = lambda _: scripts.pop(0)


@pytest.mark.parametrize("steps", [[9.0], [STREAM_HEAD, 9.0]])
def test_a_late_stream_is_overtaken_and_its_engine_told_to_stop(steps: list[Step]) -> None:
    async def main() -> None:
        with stand_for(pair(), path=PATH) as stand:
            await known(stand)
            late(stand, [*steps, *stream_of("slow")], stream_of("fast"))
            begun = stand.loop.time()
            got = await stand.ask(post(chat(stream=True)))
            assert got.body.startswith(event("fast"))
            assert stand.loop.time() - begun < 1.0
            assert got.headers[b"x-tidegate-attempts"] == b"2"
            row = stand.rows[-1]
            assert (row.outcome, row.attempts) == (Outcome.OK, 2)
            assert row.replica == got.headers[b"x-tidegate-replica"].decode()
            slow = next(engine for name, engine in stand.engines.items() if name != row.replica)
            assert slow.connections[-1].was_left
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


def test_the_first_may_still_win() -> None:
    async def main() -> None:
        with stand_for(pair(), path=PATH) as stand:
            await known(stand)
            late(stand, [0.6, *stream_of("first")], [5.0, *stream_of("second")])
            got = await stand.ask(post(chat(stream=True)))
            assert got.body.startswith(event("first"))
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


@pytest.mark.parametrize("failure", [["close"], [json_answer({"error": {"message": "boom"}}, "500 Error")]])
def test_one_that_fails_leaves_it_to_the_other(failure: list[Step]) -> None:
    async def main() -> None:
        with stand_for(pair(), path=PATH) as stand:
            await known(stand)
            late(stand, [2.0, *stream_of("first")], failure)
            got = await stand.ask(post(chat(stream=True)))
            assert (got.status, got.body.startswith(event("first"))) == (200, True)
            late(stand, [0.5, *failure], [3.0, *stream_of("second")])
            got = await stand.ask(post(chat(stream=True)))
            assert (got.status, got.body.startswith(event("second"))) == (200, True)
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


def test_a_whole_answer_in_place_of_a_stream_wins_too() -> None:
    async def main() -> None:
        with stand_for(pair(), path=PATH) as stand:
            await known(stand)
            late(stand, [9.0], [WHOLE])
            got = await stand.ask(post(chat(stream=True)))
            assert got.status == 200
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())


@pytest.mark.parametrize("how", ["leaves", "stops"])
def test_both_end_with_their_client_or_their_gateway(how: str) -> None:
    async def main() -> None:
        with stand_for(pair(), path=PATH) as stand:
            await known(stand)
            late(stand, [9.0], [9.0])
            client = stand.client()
            client.send(post(chat(stream=True)))
            await stand.until(lambda: stand.permits == 2)
            if how == "leaves":
                assert client.transport is not None
                client.transport.abort()
            else:
                stand.gateway.stop()
            await stand.until(lambda: len(stand.rows) == 41)
            assert stand.rows[-1].outcome is (Outcome.CLIENT_LEFT if how == "leaves" else Outcome.SHUTDOWN)
            await stand.until(lambda: stand.permits == 0)

    run_virtually(main())
