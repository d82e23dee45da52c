from __future__ import annotations

import asyncio
import gc

import pytest

from tests.gateway.stand import WHOLE, Engine, settings_for
from tests.gateway.stand import Stand as Stand_
from tidegate.gateway import ticker
from tidegate.testing.virtual_loop import run_virtually


def test_ticks_come_at_their_interval_and_their_lateness_is_noted() -> None:
    async def main() -> None:
        engine = {"r": Engine([WHOLE])}
        stand = Stand_(engine, settings_for(engine))
        lags: list[float] = []
        ticking = ticker.Ticker(stand.gateway, stand.loop, 0.1, lags.append)
        ticking.start()
        await asyncio.sleep(1.05)
        ticking.stop()
        await asyncio.sleep(1)
        assert len(lags) == 10
        assert max(lags) < 1e-6

    run_virtually(main())


@pytest.mark.parametrize(("open_requests", "most", "collects"), [(0, 10**9, True), (1, 10**9, False), (1, 0, True)])
def test_garbage_is_collected_when_nobody_waits_or_when_it_must_be(
    open_requests: int, most: int, collects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[bool] = []
    monkeypatch.setattr(ticker, "TOO_MANY_OBJECTS", most)
    monkeypatch.setattr(gc, "collect", lambda: ran.append(True))
    monkeypatch.setattr(gc, "get_count", lambda: (5, 0, 0))
    ticker.collect_if_idle(open_requests)
    assert bool(ran) is collects
