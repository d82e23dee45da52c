"""Equal events give equal decisions: again, in another process, and under another hash seed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path as FilePath

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Answer, Refuse
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig

REPLICAS = tuple(replica_config(f"a{number}", sequences=2) for number in range(20))
CONFIG = PathConfig(replicas=REPLICAS, queue=QueueConfig(max_requests=30))


def history(seed: int) -> list[list[object]]:
    """Everything that Path decided about a thousand random events."""
    events, chance, told = Events(Path(CONFIG, 0.0)), random.Random(seed), list[list[object]]()
    gone = {name: each for name, each in CONFIG.classes.classes.items() if name not in ("batch", "other")}
    for step in range(1000):
        roll = chance.random()
        if roll < 0.5:
            decision = events.offer(
                prompt_tokens=chance.randrange(1, 3000),
                max_tokens=chance.randrange(1, 500),
                session=chance.choice(["s1", "s2", None]),
                key=chance.choice(["k1", "k2", None]),
                class_hint=chance.choice(["batch", "other", None]),
                prefixes=((chance.randrange(5), 1.0),),
                first_byte_by=events.now + chance.uniform(1.0, 20.0),
            )
            told.append([step, *described(decision)])
        elif roll < 0.8 and events.live:
            outcome = chance.choice([*Outcome])
            events.settle(chance.randrange(1000), outcome, still_running=outcome is Outcome.CLIENT_LEFT)
        elif roll < 0.9:
            events.pass_time(chance.uniform(0.0, 2.0))
        elif roll < 0.93:
            keep = tuple(each for each in REPLICAS if chance.random() < 0.9)
            classes = gone if chance.random() < 0.5 else CONFIG.classes.classes
            events.apply(replace(CONFIG, replicas=keep, classes=replace(CONFIG.classes, classes=classes)))
        elif events.waiting:
            events.cancel(chance.randrange(1000))
        told.extend([step, permit.id, permit.replica] for _, permit in events.live)
    told.extend([record.request.id, str(record.refused), str(record.outcome)] for record in events.records)
    told.append([events.path.dump(events.now)])
    return told


def described(decision: object) -> list[object]:
    if isinstance(decision, Admit):
        return ["admit", decision.permit.replica, decision.permit.id]
    if isinstance(decision, Refuse | Answer):
        return [type(decision).__name__, str(decision.reason), getattr(decision, "retry_after_s", None)]
    return [repr(decision)]


def test_the_same_events_give_the_same_decisions() -> None:
    assert history(1) == history(1)
    assert history(1) != history(2)


def test_nothing_depends_on_the_order_in_which_strings_are_hashed() -> None:
    root = FilePath(__file__).resolve().parents[2]
    code = "import json, sys; from tests.policy.test_path_determinism import history; json.dump(history(3), sys.stdout)"
    outputs = set()
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root, env=environment
        )
        outputs.add(ended.stdout)
    assert len(outputs) == 1
    assert json.loads(outputs.pop()) == json.loads(json.dumps(history(3)))
