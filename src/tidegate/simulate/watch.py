"""Looks at the memory of every engine a few times a second, and keeps the sums that the report divides."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.engines.kv_memory import KvMemory
from tidegate.simulate.clients import Clients
from tidegate.simulate.clock import Clock
from tidegate.simulate.front import LedgerFront
from tidegate.simulate.replica import SimulatedReplica
from tidegate.simulate.scenario import Scenario

SAMPLE_S = 0.25


@dataclass(slots=True)
class Sums:
    """Over the samples of one engine: bytes where the scenario shares a pool, else tokens."""

    total: int = 0
    allocated: int = 0
    filled: int = 0
    free: int = 0
    largest_free: int = 0
    reserved: int = 0
    """Promised to requests by the gateway's ledger."""
    has_ledger: bool = False

    def add(self, memory: KvMemory, reserved: int | None, unit: int) -> None:
        self.total += memory.total * unit
        self.allocated += memory.allocated * unit
        self.filled += memory.filled * unit
        self.free += memory.free * unit
        self.largest_free += memory.largest_free * unit
        self.reserved += (reserved or 0) * unit
        self.has_ledger = reserved is not None


@dataclass(slots=True)
class Wait:
    """How long a group has stood at its floor's gate: under its floor, with work, and without memory."""

    longest_s: float = 0.0
    running_s: float = 0.0

    def add(self, waits: bool) -> None:
        self.running_s = self.running_s + SAMPLE_S if waits else 0.0
        self.longest_s = max(self.longest_s, self.running_s)


@dataclass(slots=True)
class Watch:
    scenario: Scenario
    front: LedgerFront
    replicas: list[SimulatedReplica]
    clients: Clients
    clock: Clock
    samples: int = 0
    """While anything was allocated; inside the burst only, where the scenario has one."""
    engines: dict[str, Sums] = field(default_factory=dict)
    borrowed_bytes: int = 0
    most_allocated_bytes: int = 0
    """By all engines together at one moment of the whole run."""
    waits: dict[str, Wait] = field(default_factory=dict)
    """By group, over the whole run."""

    def look(self) -> None:
        """Sample now, and again until every visit has ended."""
        now, burst = self.clock.now, self.scenario.burst
        groups = {} if self.scenario.pool is None else self.front.groups()
        for name, group in groups.items():
            self.waits.setdefault(name, Wait()).add(bool(group["waits"]))
        memories = [replica.memory() for replica in self.replicas]
        units = [1 if replica.part is None else replica.part.bytes_per_token for replica in self.replicas]
        allocated = sum(memory.allocated * unit for memory, unit in zip(memories, units, strict=True))
        self.most_allocated_bytes = max(self.most_allocated_bytes, allocated)
        if allocated and (burst is None or burst.start_s <= now < burst.end_s):
            self.samples += 1
            self.borrowed_bytes += sum(group["borrowed_bytes"] for group in groups.values())
            for replica, memory, unit in zip(self.replicas, memories, units, strict=True):
                reserved = self.front.reserved_tokens(replica.name)
                self.engines.setdefault(replica.name, Sums()).add(memory, reserved, unit)
        if self.clients.live:
            self.clock.schedule(now + SAMPLE_S, self.look)
