"""Alarms, on the kernel's clock and on a virtual one."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from tidegate.load.alarm import KernelAlarm, LoopAlarm, alarm_for
from tidegate.testing.virtual_loop import run_virtually


@pytest.mark.skipif(sys.platform != "linux", reason="timerfd is Linux's")
def test_the_kernel_s_alarm_rings_once_at_its_time_and_the_last_one_set_counts() -> None:
    async def main() -> list[float]:
        rings: asyncio.Queue[float] = asyncio.Queue()
        alarm = alarm_for(lambda: rings.put_nowait(time.monotonic()), time.monotonic)
        assert isinstance(alarm, KernelAlarm)
        began = time.monotonic()
        alarm.set(began + 30.0)
        alarm.set(began + 0.0213)
        first = await rings.get()
        alarm.set(began)  # In the past: at once.
        second = await rings.get()
        alarm.set(time.monotonic() + 0.001)
        alarm.close()
        alarm.close()
        assert rings.empty()
        return [first - began, second - began]

    first, second = asyncio.run(main())
    assert 0.0213 <= first <= second < 5.0


@pytest.mark.skipif(sys.platform != "linux", reason="timerfd is Linux's")
def test_an_alarm_set_anew_between_ringing_and_being_heard_does_not_ring_early() -> None:
    async def main() -> int:
        rung: list[None] = []
        alarm = KernelAlarm(lambda: rung.append(None))
        alarm.set(time.monotonic())
        alarm.set(time.monotonic() + 30.0)
        alarm._ring()
        await asyncio.sleep(0)
        alarm.close()
        return len(rung)

    assert asyncio.run(main()) == 0


def test_no_file_descriptor_is_an_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoFiles:
        @staticmethod
        def timerfd_create(clock: int, flags: int) -> int:
            return -1

    async def main() -> None:
        monkeypatch.setattr("tidegate.load.alarm.ctypes.CDLL", lambda *_, **__: NoFiles)
        KernelAlarm(lambda: None)

    with pytest.raises(OSError, match="timerfd_create"):
        asyncio.run(main())


def test_on_another_clock_the_loop_s_own_timers_are_used() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        rung: list[float] = []
        alarm = alarm_for(lambda: rung.append(loop.time() - 1000.0), loop.time)
        assert isinstance(alarm, LoopAlarm)
        alarm.set(1005.0)
        alarm.set(1002.0)
        await asyncio.sleep(10.0)
        alarm.set(1000.0)
        await asyncio.sleep(1.0)
        alarm.close()
        return rung

    # In the past: in a millisecond, so that a loop with coarse timers does not spin.
    assert run_virtually(main()) == pytest.approx([2.0, 10.001])
