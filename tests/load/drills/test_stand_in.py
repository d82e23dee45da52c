"""The engine without a model that stands in for one in drills."""

from __future__ import annotations

import asyncio
import os

import pytest

from tidegate.errors import EngineError
from tidegate.load.drills.stand_in import StandIn, paced, resident_bytes
from tidegate.testing.faults import Fault
from tidegate.wire.fetch import fetch


def test_it_serves_at_the_address_that_it_names_beforehand_and_misbehaves_on_command() -> None:
    async def main() -> None:
        engine = paced("a")
        url = engine.url
        assert (engine.pid, engine.resident_bytes, engine.is_serving) == (None, None, False)
        await engine.start()
        await engine.start()
        try:
            assert (engine.url, engine.lives, engine.is_serving) == (url, 1, True)
            assert (engine.resident_bytes or 0) > 1 << 20
            assert (await fetch(f"{url}/health", timeout_s=5.0)).status == 200
            await engine.fail(Fault.REFUSE)
            with pytest.raises(ConnectionRefusedError):
                await fetch(f"{url}/health", timeout_s=5.0)
        finally:
            await engine.close()
        assert engine.pid is None

    asyncio.run(main())


def test_one_that_does_not_start_says_so() -> None:
    async def main() -> None:
        await StandIn("a", kind="no-such-kind").start()

    with pytest.raises(EngineError, match="did not start"):
        asyncio.run(main())


def test_memory_of_a_process_that_is_not_there_is_unknown() -> None:
    assert resident_bytes(None) is None
    assert resident_bytes(2**22 + 1) is None
    assert (resident_bytes(os.getpid()) or 0) > 0
