"""What a report says of memory, and of what."""

from __future__ import annotations

import pytest

from tidegate.engines.kv_memory import KvMemory
from tidegate.engines.presets import preset
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.memory_figures import memory, pool
from tidegate.simulate.native import Native
from tidegate.simulate.report import report
from tidegate.simulate.run import simulate
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.watch import Sums, Wait, Watch


def watch() -> Watch:
    engine = preset("A100", "llama-3-8b")
    scenario = Scenario(name="x", engines=(engine,), demands=[], slo=Slo(1.0, 1.0), tries=1)
    clock = Clock()
    clients = Clients(clock, 1)
    return Watch(scenario, Native([], clients), [], clients, clock)


def test_nothing_is_said_of_memory_that_was_never_used() -> None:
    assert memory(watch()) is None
    assert pool(watch()) is None


def test_means_are_weighted_by_size() -> None:
    seen = watch()
    seen.samples = 2
    sums = seen.engines["a"] = Sums()
    sums.add(KvMemory(total=1000, allocated=500, filled=400, largest_free=250), None, 1)
    sums.add(KvMemory(total=1000, allocated=0, filled=0, largest_free=1000), None, 1)
    assert memory(seen) == {
        "external_fragmentation": pytest.approx(1 - 1250 / 1500, abs=1e-4),
        "internal_waste": 0.2,
        "pool_pressure": 0.25,
        "free_share": 0.75,
        "largest_free_share": 0.625,
        "reserved_share": None,
        "reserved_waste": None,
    }
    assert pool(seen) is None


def test_a_ledger_shows_what_was_promised_and_not_filled() -> None:
    seen = watch()
    seen.samples = 1
    sums = seen.engines["a"] = Sums()
    sums.add(KvMemory(total=1000, allocated=500, filled=400, largest_free=500), 800, 1)
    found = memory(seen)
    assert found is not None
    assert (found["reserved_share"], found["reserved_waste"]) == (0.8, 0.5)


def test_nothing_allocated_wastes_nothing() -> None:
    empty = KvMemory(total=10, allocated=0, filled=0, largest_free=10)
    full = KvMemory(total=10, allocated=10, filled=10, largest_free=0)
    assert (empty.internal_waste, empty.external_fragmentation, empty.pool_pressure) == (0.0, 0.0, 0.0)
    assert (full.internal_waste, full.external_fragmentation, full.pool_pressure) == (0.0, 0.0, 1.0)


def test_the_longest_wait_is_the_longest_in_a_row() -> None:
    wait = Wait()
    for waits in (True, True, False, True):
        wait.add(waits)
    assert wait.longest_s == 0.5


def test_every_scenario_is_told_its_memory_and_the_gateway_its_ledger() -> None:
    found = report(simulate("silence-then-200", "tidegate", 1))
    assert found["memory"]["external_fragmentation"] == 0.0
    assert found["memory"]["reserved_share"] > found["memory"]["pool_pressure"] > 0
    assert found["pool"] is None
    torn = report(simulate("silence-then-200", "native:contiguous", 1))
    assert torn["memory"]["external_fragmentation"] > 0.05
    assert torn["memory"]["reserved_share"] is None
