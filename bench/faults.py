"""What clients see when an engine fails: a table of faults, measured on real processes.

    python bench/faults.py [--json] [--replicas 2] [--rate 30] [FAULT …]

For each fault: ``tidegate serve`` before two upstreams of ``tidegate.testing.faulty_upstream`` (before one with
``--replicas 1``), a steady load that waits for nobody, the fault on one of them, its healing 8 s later, 10 s more. The
definitions of the columns are printed beside the figures; docs/faults.md has a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.fault_runs.cases import CASES, OF_ANY_PROCESS
from bench.fault_runs.figures import DEFINITIONS, table
from bench.fault_runs.load import COMPLETIONS
from bench.fault_runs.run import LLAMA, Plan, run


def planned(given: argparse.Namespace) -> Plan:
    plan = LLAMA if given.kind == "llamacpp" else Plan(kind=given.kind)
    load, is_real = plan.load, given.kind == "llamacpp"
    load.rate = given.rate or load.rate * given.replicas / 2
    plan = replace(plan, fault_s=given.fault_s, config=json.loads(given.config))
    if not given.continuation:
        return plan
    if not is_real:
        # Of a vLLM's chats no text is continued.
        load.path = COMPLETIONS
    return replace(plan, continuation="text")


def main() -> int:
    parser = argparse.ArgumentParser(description="faults on real processes")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"default: all of {', '.join(CASES)}")
    parser.add_argument("--replicas", type=int, choices=(1, 2), default=2)
    parser.add_argument("--rate", type=float, help="requests a second")
    parser.add_argument(
        "--kind",
        choices=("vllm", "openai", "llamacpp"),
        default="vllm",
        help="what the upstreams say they are; llamacpp: real engines, which can be killed and frozen",
    )
    parser.add_argument("--fault-s", type=float, default=8.0, help="how long a fault lasts")
    parser.add_argument("--config", default="{}", help="JSON laid over the configuration of the gateway")
    parser.add_argument(
        "--continuation", action="store_true", help="of streams, as text; of completions, where vLLM is meant"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")
    parser.add_argument("--show", action="store_true", help="every request that did not end well, on standard error")
    given = parser.parse_args()
    known = OF_ANY_PROCESS if given.kind == "llamacpp" else tuple(CASES)
    unknown = sorted({*given.faults} - {*known})
    if unknown:
        parser.error(f"unknown fault {', '.join(unknown)}; there are {', '.join(known)}")
    plan = planned(given)
    load = plan.load
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.faults or known:
            figures, _ = run(CASES[name], plan, given.replicas, Path(folder))
            found.append(figures)
            print(f"{name}: {figures.ends} {figures.codes}", file=sys.stderr)
            for each in figures.failed if given.show else ():
                print(f"  {each}", file=sys.stderr)
    if given.json:
        print(json.dumps({"timeouts": plan.timeouts, "figures": [asdict(each) for each in found]}))
        return 0
    pace = "at the small model's pace" if given.kind == "llamacpp" else f"at {plan.pace_s * 1000:.0f} ms"
    said = f"{load.rate:g} requests a second, {load.streams:.0%} of them streams, {load.tokens} tokens {pace}"
    print(f"{said}; {plan.slots} sequences a replica; fault for {plan.fault_s:g} s; continuation {plan.continuation}")
    print(f"timeouts: {json.dumps(plan.timeouts)}\n")
    print(table(found, {name: case.expected for name, case in CASES.items()}))
    print(f"\n{DEFINITIONS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
