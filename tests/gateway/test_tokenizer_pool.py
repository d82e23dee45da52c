"""Tokenizer processes: started when needed, smallest question first, and none of their failures is anybody's loss."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.fake_tokenizers import FakeSpawn, one_a_byte
from tidegate.gateway.tokenizer_pool import (
    LARGE_BODY_BYTES,
    LARGEST_BODY_BYTES,
    MOST_PENDING,
    MOST_PENDING_BYTES,
    SHORTEST_PAUSE_S,
    STUCK_AFTER_S,
    STUCK_PER_BYTE_S,
    TokenizerPool,
    usual_processes,
)
from tidegate.gateway.tokenizing_messages import Count, Counted, Question, Told
from tidegate.testing.virtual_loop import run_virtually

LARGE = LARGE_BODY_BYTES + 1


def question(size_bytes: int) -> Count:
    return Count("t", "/v1/completions", bytes(size_bytes))


async def ask(pool: TokenizerPool, size_bytes: int = 3) -> Told | None:
    answer = pool.ask(question(size_bytes), size_bytes)
    assert answer is not None
    return await answer


def test_no_process_is_started_before_something_is_asked_and_one_is_enough_for_one_at_a_time() -> None:
    async def main() -> None:
        spawn = FakeSpawn()
        pool = TokenizerPool(spawn, 4)
        assert spawn.seats == []
        assert [await ask(pool), await ask(pool, 5)] == [Counted((3,)), Counted((5,))]
        assert len(spawn.seats) == 1

    run_virtually(main())


def test_what_waits_has_more_processes_started_up_to_their_number() -> None:
    async def main() -> None:
        spawn = FakeSpawn(after_s=1.0)
        pool = TokenizerPool(spawn, 3)
        await asyncio.gather(*(ask(pool) for _ in range(9)))
        assert len(spawn.seats) == 3
        assert asyncio.get_running_loop().time() == 1003.0

    run_virtually(main())


def test_the_smallest_question_goes_first() -> None:
    async def main() -> None:
        spawn = FakeSpawn(after_s=1.0)
        pool = TokenizerPool(spawn, 1)
        await asyncio.gather(*(ask(pool, size) for size in (5, 9, 7, 1)))
        assert [len(each.body) for each in spawn.counted] == [1, 5, 7, 9]

    run_virtually(main())


def test_large_questions_leave_one_process_to_small_ones() -> None:
    async def main() -> None:
        spawn = FakeSpawn(after_s=1.0)
        pool = TokenizerPool(spawn, 2)
        large = [asyncio.ensure_future(ask(pool, LARGE)) for _ in range(4)]
        await asyncio.sleep(0.5)
        began_at = asyncio.get_running_loop().time()
        await ask(pool)
        assert asyncio.get_running_loop().time() - began_at == 1.0
        await asyncio.gather(*large)
        assert asyncio.get_running_loop().time() == 1004.0

    run_virtually(main())


def test_one_process_alone_takes_large_ones_too() -> None:
    async def main() -> None:
        assert await ask(TokenizerPool(FakeSpawn(), 1), LARGE) == Counted((LARGE,))

    run_virtually(main())


def test_what_is_pending_is_bounded_in_number_and_bytes() -> None:
    async def main() -> None:
        pool = TokenizerPool(FakeSpawn(after_s=1.0), 2)
        answers = [pool.ask(question(1), 1) for _ in range(MOST_PENDING + 1)]
        assert [answer is None for answer in answers] == [False] * MOST_PENDING + [True]
        await asyncio.gather(*(answer for answer in answers if answer is not None))
        assert pool.ask(question(1), LARGEST_BODY_BYTES + 1) is None
        fit = MOST_PENDING_BYTES // LARGEST_BODY_BYTES
        large = [pool.ask(question(1), LARGEST_BODY_BYTES, 1e9) for _ in range(fit + 1)]
        assert [answer is None for answer in large] == [False] * fit + [True]

    run_virtually(main())


def test_what_would_take_too_long_at_the_pace_of_the_last_ones_is_not_taken() -> None:
    async def main() -> None:
        spawn = FakeSpawn(after_s=0.1)
        pool = TokenizerPool(spawn, 2)
        first = pool.ask(question(1), LARGE, 5.0)
        assert first is not None
        await first
        # The first moved the pace from 1 MB/s to 0.9, at which six of 64 KiB take 0.44 s.
        taken = [pool.ask(question(1), LARGE, 0.5) for _ in range(20)]
        assert [answer is not None for answer in taken] == [True] * 6 + [False] * 14
        assert pool.ask(question(1), 10, 0.01) is not None
        spawn.after_s = 1.0
        await asyncio.gather(*(answer for answer in taken if answer is not None))
        assert pool.ask(question(1), LARGE, 0.3) is None

    run_virtually(main())


def test_what_nobody_waits_for_any_more_is_not_asked_and_makes_room() -> None:
    async def main() -> None:
        spawn = FakeSpawn(after_s=1.0)
        pool = TokenizerPool(spawn, 1)
        first, left, last = (pool.ask(question(size), size) for size in (1, 2, 3))
        assert first is not None
        assert left is not None
        assert last is not None
        left.cancel()
        assert [await first, await last] == [Counted((1,)), Counted((3,))]
        assert [len(each.body) for each in spawn.counted] == [1, 3]

    run_virtually(main())


def test_a_process_that_takes_too_long_is_killed_and_the_next_question_has_another() -> None:
    async def main() -> None:
        spawn, logged = FakeSpawn(after_s=1e6), list[str]()
        pool = TokenizerPool(spawn, 1, lambda level, text: logged.append(f"{level}: {text}"))
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        assert await ask(pool, 1000) is None
        assert loop.time() - began_at == pytest.approx(STUCK_AFTER_S + 1000 * STUCK_PER_BYTE_S)
        assert (spawn.seats[0].is_killed, pool.killed) == (True, 1)
        assert logged == [
            "warning: a tokenizer process did not come back from 1000 bytes and is killed",
            "warning: a tokenizer process has ended; estimates stand, and none is started for 1 s",
        ]
        spawn.after_s = 0.0
        await asyncio.sleep(SHORTEST_PAUSE_S)
        assert await ask(pool) == Counted((3,))

    run_virtually(main())


def test_processes_that_keep_dying_are_started_ever_more_rarely() -> None:
    async def main() -> None:
        def dies(question: Question) -> Told | None:
            return None

        spawn = FakeSpawn(dies)
        pool = TokenizerPool(spawn, 1)
        loop, pauses = asyncio.get_running_loop(), []
        for _ in range(8):
            assert await ask(pool) is None
            died_at = loop.time()
            for _ in range(1000):
                if (answer := pool.ask(question(1), 1)) is not None:
                    answer.cancel()
                    break
                await asyncio.sleep(0.25)
            pauses.append(loop.time() - died_at)
        assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
        spawn.answer = one_a_byte
        assert await ask(pool) == Counted((3,))

    run_virtually(main())


def test_when_one_of_two_dies_the_other_goes_on() -> None:
    async def main() -> None:
        def dies_over_one(question: Question) -> Told | None:
            return None if isinstance(question, Count) and len(question.body) == 1 else one_a_byte(question)

        pool = TokenizerPool(FakeSpawn(dies_over_one, after_s=1.0), 2)
        told = await asyncio.gather(*(ask(pool, size) for size in (1, 2, 3, 4)))
        assert told == [None, Counted((2,)), Counted((3,)), Counted((4,))]

    run_virtually(main())


def test_without_room_for_a_process_nobody_counts() -> None:
    async def main() -> None:
        spawn = FakeSpawn()
        spawn.fails = True
        logged = list[str]()
        pool = TokenizerPool(spawn, 1, lambda level, text: logged.append(text))
        assert await ask(pool) is None
        assert pool.ask(question(1), 1) is None
        assert logged[0] == "a tokenizer process cannot be started: no more processes"

    run_virtually(main())


def test_the_end_answers_what_is_pending_and_kills_what_runs() -> None:
    async def main() -> None:
        spawn, logged = FakeSpawn(after_s=60.0), list[str]()
        pool = TokenizerPool(spawn, 1, lambda level, text: logged.append(text))
        running, waiting = (asyncio.ensure_future(ask(pool, size)) for size in (1, 2))
        await asyncio.sleep(1)
        pool.close()
        assert [await running, await waiting] == [None, None]
        assert spawn.seats[0].is_killed
        await asyncio.sleep(1)
        assert logged == []

    run_virtually(main())


def test_the_end_stops_a_start() -> None:
    async def main() -> None:
        spawn = FakeSpawn()
        spawn.starts_after_s = 60.0
        pool = TokenizerPool(spawn, 1)
        waiting = asyncio.ensure_future(ask(pool))
        await asyncio.sleep(1)
        pool.close()
        assert await waiting is None
        assert spawn.seats == []

    run_virtually(main())


def test_there_is_a_process_for_small_questions_on_any_machine() -> None:
    assert 2 <= usual_processes() <= 4
