"""Readings come at their cadence, sooner when wanted, and silence is told from death. On virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from tidegate.errors import EngineError
from tidegate.gateway.polling import INTERVAL_S, SOON_FOR_S, SOON_INTERVAL_S, STALE_AFTER_S, Polling
from tidegate.policy.reading import Reading
from tidegate.testing.virtual_loop import run_virtually


class Engine:
    """Answers with a reading, an error, or not at all."""

    def __init__(self, look_every_s: float = 0.0) -> None:
        self.look_every_s = look_every_s
        self.error: Exception | None = None
        self.is_silent = False
        self.asked_at: list[float] = []

    async def read(self, now: float) -> Reading:
        self.asked_at.append(now)
        if self.is_silent:
            await asyncio.get_running_loop().create_future()
        if self.error is not None:
            raise self.error
        return Reading(at=now, running=1)


class Seen:
    """What polling reported."""

    def __init__(self) -> None:
        self.readings: list[tuple[str, Reading]] = []

    def observe(self, name: str, reading: Reading) -> None:
        self.readings.append((name, reading))

    def shows_ready(self) -> bool:
        return self.readings[-1][1].ready


def gaps(times: list[float]) -> list[float]:
    return [round(later - earlier, 6) for earlier, later in pairwise(times)]


def test_a_replica_is_read_at_once_and_then_at_the_interval() -> None:
    async def body() -> None:
        engine, seen = Engine(), Seen()
        polling = Polling(seen.observe)
        polling.follow({"a": engine})
        await asyncio.sleep(2.2)
        assert gaps(engine.asked_at) == [INTERVAL_S] * 4
        assert [name for name, _ in seen.readings] == ["a"] * 5
        assert polling.latest["a"] is seen.readings[-1][1]
        await polling.close()

    run_virtually(body())


def test_a_replica_in_a_hurry_is_read_at_once_and_often_for_a_while_only() -> None:
    async def body() -> None:
        engine = Engine()
        polling = Polling(Seen().observe)
        polling.follow({"a": engine})
        await asyncio.sleep(0.2)
        polling.poll_soon("a")
        polling.poll_soon("nobody")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(engine.asked_at) == 2
        await asyncio.sleep(SOON_FOR_S + 2)
        often = [gap for gap in gaps(engine.asked_at[1:]) if gap == SOON_INTERVAL_S]
        assert 29 <= len(often) <= 31
        assert gaps(engine.asked_at)[-1] == INTERVAL_S
        await polling.close()

    run_virtually(body())


def test_many_wishes_for_haste_do_not_make_a_busy_loop() -> None:
    async def body() -> None:
        engine = Engine()
        polling = Polling(Seen().observe)
        polling.follow({"a": engine})
        for _ in range(100):
            polling.poll_soon("a")
            await asyncio.sleep(0.001)
        assert len(engine.asked_at) <= 3
        await polling.close()

    run_virtually(body())


def test_an_engine_that_bears_few_looks_is_not_looked_at_more_often() -> None:
    async def body() -> None:
        engine = Engine(look_every_s=5.0)
        polling = Polling(Seen().observe)
        polling.follow({"a": engine})
        await asyncio.sleep(11)
        assert gaps(engine.asked_at) == [5.0, 5.0]
        await polling.close()

    run_virtually(body())


def test_an_engine_that_cannot_be_reached_is_not_ready_at_once_and_says_why() -> None:
    async def body() -> None:
        engine, seen = Engine(), Seen()
        engine.error = EngineError("connection refused by 127.0.0.1:9")
        polling = Polling(seen.observe)
        polling.follow({"a": engine})
        await asyncio.sleep(0.1)
        [(_, reading)] = seen.readings
        assert (reading.ready, reading.error) == (False, "connection refused by 127.0.0.1:9")
        engine.error = None
        await asyncio.sleep(INTERVAL_S)
        assert seen.shows_ready()
        await polling.close()

    run_virtually(body())


def test_an_engine_that_is_silent_is_given_time_before_it_counts_as_not_ready() -> None:
    async def body() -> None:
        engine, seen = Engine(), Seen()
        polling = Polling(seen.observe)
        polling.follow({"a": engine})
        await asyncio.sleep(1.0)
        heard = len(seen.readings)
        engine.is_silent = True
        await asyncio.sleep(STALE_AFTER_S - 1)
        assert len(seen.readings) <= heard + 1
        assert seen.shows_ready()
        await asyncio.sleep(5)
        assert not seen.shows_ready()
        assert "no reading for" in seen.readings[-1][1].error
        await polling.close()

    run_virtually(body())


def test_one_that_hangs_delays_no_other() -> None:
    async def body() -> None:
        hung, sound = Engine(), Engine()
        hung.is_silent = True
        polling = Polling(Seen().observe)
        polling.follow({"hung": hung, "sound": sound})
        await asyncio.sleep(2.2)
        assert len(sound.asked_at) == 5
        await polling.close()

    run_virtually(body())


def test_following_others_leaves_the_unchanged_alone_and_forgets_the_gone() -> None:
    async def body() -> None:
        stays, goes, comes = Engine(), Engine(), Engine()
        polling = Polling(Seen().observe)
        polling.follow({"stays": stays, "goes": goes})
        await asyncio.sleep(0.7)
        polling.follow({"stays": stays, "comes": comes})
        await asyncio.sleep(0.7)
        assert gaps(stays.asked_at) == [INTERVAL_S] * 2
        assert len(goes.asked_at) == 2
        assert len(comes.asked_at) == 2
        assert set(polling.latest) == {"stays", "comes"}
        await polling.close()
        await asyncio.sleep(5)
        assert len(stays.asked_at) == 3

    run_virtually(body())
