"""How much the deployment can do on this machine, and how much of it a drill's steady load may take."""

from __future__ import annotations

import time
from dataclasses import replace

from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.load.target import Target

SHARE = 0.4
"""Of what the service can do with one replica less: the others must be able to take over."""
SLOWEST_PER_S, QUICKEST_PER_S = 0.5, 5.0
USERS_PER_REPLICA = 3
WARM_UP = 4


async def affordable(target: Target, pace: Pace, replicas: int, for_s: float) -> Pace:
    """``pace`` with the rates that were measured with a closed loop of ``for_s``."""
    load = SteadyLoad(name=f"rate-{time.time_ns() % 10**9}", rate_per_s=1.0, pace=pace)
    asks = load.asks(0)
    found: list[Sample] = []
    sender = Sender(target, time.monotonic())
    try:
        await sender.closed_loop(asks, replicas, for_s, WARM_UP, lambda _: None, "warm-up")
        began = time.monotonic()
        await sender.closed_loop(asks, USERS_PER_REPLICA * replicas, for_s, None, found.append, "rate")
        took_s = time.monotonic() - began
    finally:
        await sender.close()
    return rated(pace, sum(each.is_answered for each in found) / took_s, replicas)


def rated(pace: Pace, peak_per_s: float, replicas: int) -> Pace:
    left = max(1, replicas - 1) / max(1, replicas)
    rate_per_s = min(QUICKEST_PER_S, max(SLOWEST_PER_S, SHARE * left * peak_per_s))
    return replace(pace, rate_per_s=round(rate_per_s, 2), peak_per_s=max(peak_per_s, rate_per_s))
