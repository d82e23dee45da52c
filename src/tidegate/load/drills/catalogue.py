"""Every drill, and every fault that the own deployment knows, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.load.drills import (
    burst_spike,
    clock_jump,
    disk_full,
    engine_freeze,
    gateway_killed,
    migrate,
    network_jitter,
    node_lost,
    out_of_memory,
    quota_cut,
    several_restarts,
    stale_metrics,
    tail_breaker,
    upstream_timeout,
)
from tidegate.load.drills.clock_fault import ClockJump
from tidegate.load.drills.disk_fault import DiskFull
from tidegate.load.drills.drain_fault import Drain
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.gateway_faults import DataKilled, GatewayKilled
from tidegate.load.drills.jitter_fault import Jitter
from tidegate.load.drills.memory_fault import MemoryRunsOut
from tidegate.load.drills.own_deployment import OwnFault
from tidegate.load.drills.replica_faults import Freeze, Lost, Restart
from tidegate.load.drills.stale_fault import STALE

DRILLS: Mapping[str, Drill] = {
    module.DRILL.name: module.DRILL
    for module in (
        node_lost,
        engine_freeze,
        gateway_killed,
        quota_cut,
        burst_spike,
        out_of_memory,
        several_restarts,
        network_jitter,
        stale_metrics,
        upstream_timeout,
        disk_full,
        clock_jump,
        migrate,
        tail_breaker,
    )
}
"""In the order in which ``tidegate drill all`` plays them: those that need the same deployment stand together."""

FAULTS: tuple[OwnFault, ...] = (
    Lost(),
    Restart(),
    Freeze(),
    DataKilled(),
    GatewayKilled(),
    MemoryRunsOut(),
    Drain(),
    Jitter(),
    DiskFull(),
    ClockJump(),
    *STALE,
)
OWN_FAULTS: Mapping[str, OwnFault] = {fault.name: fault for fault in FAULTS}
