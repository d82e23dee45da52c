"""Every drill, and every fault that the own deployment knows, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.load.drills import node_lost
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_deployment import OwnFault
from tidegate.load.drills.replica_faults import Freeze, Lost, Restart

DRILLS: Mapping[str, Drill] = {drill.name: drill for drill in (node_lost.DRILL,)}
"""In the order in which ``tidegate drill all`` plays them."""

OWN_FAULTS: Mapping[str, OwnFault] = {fault.name: fault for fault in (Lost(), Restart(), Freeze())}
