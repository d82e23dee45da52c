"""Several models on one budget of KV memory: who may take how much of it, and who may borrow.

A *pool* is memory that several engines draw on; a *group* is one model's part of it (SPEC S0-69, C15).
A request that needs x bytes enters group k, which uses u, when

    Σ used + x ≤ budget                                       always, and under its floor that is all:
    u + x ≤ floor                                             or else, as a loan,
    u + x ≤ cap   and   u + x + Σ kept by the others ≤ budget
    kept = max(used, min(floor, max(peak, used + reserve)))   the whole floor while it waits for memory

Partitions with borrowing (Netflix concurrency-limits), with two differences that memory forces: the
budget itself is never passed, and what is lent is idle share less a reserve for the lender's next
burst: its ``peak`` of the last ``peak_s`` seconds, and ``reserve``. Loans end with the requests that
hold them, nothing running is killed. Since Σ floors ≤ budget, a group that waits under its floor is
served at the latest when the last loan that ran at that moment has ended: none is made meanwhile.

Separate engine processes cannot share physical KV, so this is a ledger, enforced at admission.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

PEAK_S = 10.0
PEAK_TICK_S = 1.0
NO_PEAK_SHARE = 0.01
"""Of a floor: a peak that has faded below it is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """One model's part of a pool."""

    name: str
    floor_bytes: int
    """Guaranteed: never lent while the group needs it."""
    cap_bytes: int
    """Most it may hold, loans included."""
    reserve_bytes: int = 0
    """Of the idle floor, what is never lent: room for the first requests of a burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolConfig:
    name: str
    budget_bytes: int
    groups: tuple[GroupConfig, ...]
    peak_s: float = PEAK_S
    """How fast a group's past peak fades: to 37 % in this time."""

    def __post_init__(self) -> None:
        floors = sum(group.floor_bytes for group in self.groups)
        if self.peak_s <= 0:
            raise ValueError(f"pool {self.name} needs peak_s above 0, not {self.peak_s}")
        if floors > self.budget_bytes:
            raise ValueError(f"pool {self.name} guarantees {floors} bytes and has {self.budget_bytes}")
        for group in self.groups:
            if not 0 <= group.floor_bytes <= group.cap_bytes <= self.budget_bytes or group.reserve_bytes < 0:
                raise ValueError(f"group {group.name} needs 0 <= floor <= cap <= budget and reserve >= 0: {group}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsConfig:
    pools: tuple[PoolConfig, ...] = ()

    def __post_init__(self) -> None:
        names = [group.name for pool in self.pools for group in pool.groups]
        if len(set(names)) < len(names):
            raise ValueError(f"two groups cannot share a name: {', '.join(names)}")


class Group:
    """What one group uses, and what it keeps from being lent."""

    __slots__ = ("cap_bytes", "claims", "floor_bytes", "foreign_bytes", "held_bytes", "most_bytes", "name",
                 "peak_bytes", "pool", "reserve_bytes", "used_bytes")  # fmt: skip

    def __init__(self, config: GroupConfig, pool: Pool) -> None:
        self.name = config.name
        self.floor_bytes = config.floor_bytes
        self.cap_bytes = config.cap_bytes
        self.reserve_bytes = config.reserve_bytes
        self.pool = pool
        self.held_bytes = 0
        """Of our permits, unconfirmed aborts included."""
        self.foreign_bytes = 0
        """Of load on its engines that did not come through us."""
        self.used_bytes = 0
        """Held and foreign."""
        self.most_bytes = config.cap_bytes
        """The largest request that the pool admits when it is empty."""
        self.peak_bytes = 0
        """Most used lately; fades."""
        self.claims = 0
        """Upstreams that wait for memory under the floor."""

    @property
    def borrowed_bytes(self) -> int:
        return max(0, self.used_bytes - self.floor_bytes)

    @property
    def kept_bytes(self) -> int:
        """What the others must leave to it."""
        used, floor = self.used_bytes, self.floor_bytes
        wanted = floor if self.claims else min(floor, max(self.peak_bytes, used + self.reserve_bytes))
        return max(used, wanted)

    def is_within_floor(self, need_bytes: int) -> bool:
        return self.used_bytes + need_bytes <= self.floor_bytes

    def admits(self, need_bytes: int, now: float) -> bool:
        """Whether a request may enter. Takes nothing."""
        pool, after = self.pool, self.used_bytes + need_bytes
        if pool.used_bytes + need_bytes > pool.budget_bytes:
            return False
        if after <= self.floor_bytes:
            return True
        if after > self.cap_bytes:
            return False
        pool.pass_to(now)
        for group in pool.groups:
            if group is not self:
                after += group.kept_bytes
        return after <= pool.budget_bytes

    def take(self, taken_bytes: int) -> None:
        self.held_bytes += taken_bytes
        self._use(taken_bytes)

    def give_back(self, freed_bytes: int, now: float) -> None:
        pool = self.pool
        pool.pass_to(now)
        self.held_bytes -= freed_bytes
        self.used_bytes -= freed_bytes
        pool.used_bytes -= freed_bytes
        pool.is_stirred = True

    def note_foreign(self, more_bytes: int) -> None:
        """Foreign load on one of its engines has grown by so much, or shrunk."""
        self.foreign_bytes += more_bytes
        self.pool.is_stirred = True
        self._use(more_bytes)

    def _use(self, more_bytes: int) -> None:
        self.used_bytes = used = self.used_bytes + more_bytes
        self.pool.used_bytes += more_bytes
        if used > self.peak_bytes:
            self.peak_bytes = used

    def fade(self, keep: float) -> bool:
        """Let the peak fade. True: it fell."""
        before, faded = self.peak_bytes, int(self.peak_bytes * keep)
        self.peak_bytes = max(self.used_bytes, faded if faded > NO_PEAK_SHARE * self.floor_bytes else 0)
        return self.peak_bytes < before

    def view(self) -> dict[str, object]:
        return {
            "pool": self.pool.name,
            "held_bytes": self.held_bytes,
            "foreign_bytes": self.foreign_bytes,
            "floor_bytes": self.floor_bytes,
            "cap_bytes": self.cap_bytes,
            "peak_bytes": self.peak_bytes,
            "borrowed_bytes": self.borrowed_bytes,
            "kept_bytes": self.kept_bytes,
            "waits": self.claims > 0,
        }


class Pool:
    """The ledger of one budget."""

    __slots__ = ("_next_tick_at", "_peak_s", "budget_bytes", "groups", "is_stirred", "name", "used_bytes")

    def __init__(self, config: PoolConfig, now: float) -> None:
        self.name = config.name
        self.budget_bytes = config.budget_bytes
        self.groups = [Group(each, self) for each in config.groups]
        self.used_bytes = 0
        self.is_stirred = False
        """Something happened that may let a request of any group in."""
        self._peak_s = config.peak_s
        self._next_tick_at = now + PEAK_TICK_S
        reserved = sum(min(group.floor_bytes, group.reserve_bytes) for group in self.groups)
        for group in self.groups:
            others = reserved - min(group.floor_bytes, group.reserve_bytes)
            group.most_bytes = max(group.floor_bytes, min(group.cap_bytes, self.budget_bytes - others))

    @property
    def lent_bytes(self) -> int:
        """Of guaranteed memory, what other groups use."""
        unclaimed = self.budget_bytes - sum(group.floor_bytes for group in self.groups)
        return max(0, sum(group.borrowed_bytes for group in self.groups) - unclaimed)

    def pass_to(self, now: float) -> None:
        """Peaks fade at ticks, so that between two of them nothing changes by itself."""
        if now < self._next_tick_at:
            return
        ticks = int((now - self._next_tick_at) / PEAK_TICK_S) + 1
        self._next_tick_at += ticks * PEAK_TICK_S
        keep = exp(-ticks * PEAK_TICK_S / self._peak_s)
        for group in self.groups:
            if group.fade(keep):
                self.is_stirred = True

    def wakes_at(self) -> float | None:
        """When a peak fades next; None: none is above what is used."""
        fading = any(group.peak_bytes > group.used_bytes for group in self.groups)
        return self._next_tick_at if fading else None

    def view(self) -> dict[str, int]:
        return {"budget_bytes": self.budget_bytes, "used_bytes": self.used_bytes, "lent_bytes": self.lent_bytes}
