"""Every drill, and every fault that the own deployment knows, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.load.drills import (
    burst_spike,
    engine_freeze,
    gateway_killed,
    node_lost,
    out_of_memory,
    several_restarts,
)
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.gateway_faults import DataKilled, GatewayKilled
from tidegate.load.drills.memory_fault import MemoryRunsOut
from tidegate.load.drills.own_deployment import OwnFault
from tidegate.load.drills.replica_faults import Freeze, Lost, Restart

DRILLS: Mapping[str, Drill] = {
    module.DRILL.name: module.DRILL
    for module in (node_lost, engine_freeze, gateway_killed, burst_spike, out_of_memory, several_restarts)
}
"""In the order in which ``tidegate drill all`` plays them: those that need the same deployment stand together."""

OWN_FAULTS: Mapping[str, OwnFault] = {
    fault.name: fault for fault in (Lost(), Restart(), Freeze(), DataKilled(), GatewayKilled(), MemoryRunsOut())
}
