"""How fast an hour of chat is simulated, on one core.

    python bench/simulate.py [--seed N]

With TIDEGATE_TRACES set, the Azure conversation trace (58 minutes); without it the look-alike, whose
time is scaled to an hour. Prints one JSON object. Time is the CPU time of this process: other work
on the machine stretches wall time and says nothing about the simulator.
"""

from __future__ import annotations

import argparse
import json
from time import process_time

from tidegate.simulate.run import simulate

TARGET_S = 8.0


def measure(policy: str, seed: int) -> dict[str, float | int | str]:
    started = process_time()
    run = simulate("azure-conv", policy, seed)
    cpu_s = process_time() - started
    length_s = max(visit.demand.at for visit in run.visits)
    hour_s = cpu_s * max(1.0, 3500.0 / length_s)
    return {
        "policy": policy,
        "source": run.scenario.source,
        "requests": len(run.visits),
        "cpu_s": round(cpu_s, 2),
        "cpu_s_per_hour": round(hour_s, 2),
        "us_per_request": round(cpu_s / len(run.visits) * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time to simulate an hour of chat.")
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    rows = [measure(policy, seed) for policy in ("native", "tidegate")]
    slowest = max(float(row["cpu_s_per_hour"]) for row in rows)
    print(json.dumps({"rows": rows, "target_s": TARGET_S, "met": slowest <= TARGET_S}, indent=2))


if __name__ == "__main__":
    main()
