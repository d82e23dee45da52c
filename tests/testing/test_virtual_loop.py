from __future__ import annotations

import asyncio
import time

import pytest

from tidegate.testing.virtual_loop import StalledError, run_virtually


def test_an_hour_of_waiting_takes_no_time_and_keeps_its_order() -> None:
    async def nap(seconds: float, order: list[float]) -> None:
        await asyncio.sleep(seconds)
        order.append(seconds)

    async def main() -> tuple[list[float], float]:
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        order: list[float] = []
        await asyncio.gather(*(nap(seconds, order) for seconds in (3600.0, 0.5, 60.0)))
        return order, loop.time() - begun_at

    begun_at = time.perf_counter()
    order, passed = run_virtually(main())
    assert order == [0.5, 60.0, 3600.0]
    assert passed == pytest.approx(3600.0)
    assert time.perf_counter() - begun_at < 30


def test_time_stands_still_while_callbacks_run() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        for _ in range(1000):
            await asyncio.sleep(0)
        assert loop.time() == begun_at

    run_virtually(main())


def test_a_timeout_fires_at_its_virtual_time() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()

    run_virtually(main())


def test_waiting_for_what_never_comes_is_an_error_and_not_a_hang() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StalledError):
        run_virtually(main())
