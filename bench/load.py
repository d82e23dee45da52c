"""What the load generator costs, how late it sends, and whether its times are true.

    TIDEGATE_PEERS=FOLDER python bench/load.py [--seconds 10] [--rounds 3] [--gate] [--json]

FOLDER is that of ``bench/peers.py``: a mock engine (``scripts/mock.c``) and a load client (``scripts/cli.c``), both in
C. They are copied and compiled. One process of the generator sends 600 streams of 16 tokens a second, with a read for
each token and with one read for all of them. Then the generator and the client in C load the mock at the same time, at
equal rates; both measure from the moment when a request was due, and their percentiles must agree within 2 % or 1 ms.

CPU figures hold on a busy machine; lateness and percentiles do not, so the load average is printed before and after.
Where others cannot be asked to wait, ``chrt -f 1`` before ``python`` puts the mock and both clients before them.
``--gate`` fails where a bar is not met.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.load_runs.mock import Mock
from bench.load_runs.rows import Row, cost, load_average, truth


def table(rows: list[Row]) -> str:
    lines = [f"{'':44}{'predicted':>18}{'measured':>12}{'bar':>8}"]
    for row in rows:
        bar = "" if row.most is None else f"{row.most:g}" + ("" if row.is_met else " !")
        lines.append(f"{row.name:44}{row.predicted:>18}{f'{row.measured:.3f} {row.unit}':>12}{bar:>8}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="the load generator against a mock engine in C")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of the comparison with the client in C")
    parser.add_argument("--gate", action="store_true", help="exit 1 where a bar is not met")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")
    given = parser.parse_args()
    source = os.environ.get("TIDEGATE_PEERS")
    if not source or not Path(source, "scripts", "mock.c").is_file() or shutil.which("gcc") is None:
        print(
            "Not measured: this needs gcc, and TIDEGATE_PEERS naming the comparison's folder (scripts/mock.c in it).",
            file=sys.stderr,
        )
        return 2 if given.gate else 0
    loads = [load_average()]
    with tempfile.TemporaryDirectory() as folder, Mock(Path(source), Path(folder)) as mock:
        rows = cost(mock, given.seconds) + truth(mock, given.seconds, given.rounds)
    loads.append(load_average())
    if given.json:
        print(json.dumps({"load_average": loads, "rows": [asdict(row) | {"is_met": row.is_met} for row in rows]}))
    else:
        print(f"load average before: {loads[0]}; after: {loads[1]}; {os.cpu_count()} cores\n\n{table(rows)}")
    return 1 if given.gate and not all(row.is_met for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
