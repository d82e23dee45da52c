"""One fault on real processes: ``tidegate serve``, its upstreams, a load, the fault, its healing."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fault_runs.cases import Case, Engine
from bench.fault_runs.figures import (
    PROBES,
    Figures,
    attempts,
    avoided_s,
    back_s,
    count,
    failures,
    relapses,
    traffic_times,
    worked_again_s,
)
from bench.fault_runs.llama import SEQUENCES, LlamaProcess
from bench.fault_runs.load import Load, Seen, ask, play
from tests.live import running
from tests.live.running import Service, call
from tidegate.testing.upstream_process import UpstreamProcess

FAULTY, OTHER = "a", "b"
PHASE = {"floor_s": 1.0, "default_s": 1.5, "ceiling_s": 5.0}
TIMEOUTS = {"first_byte": PHASE, "gap": PHASE, "total": {"floor_s": 10.0, "default_s": 20.0, "ceiling_s": 60.0}}
"""Short ones, so that a run is short. The defaults are for real models: see docs/configuration.md."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Seconds before, in and after the fault, and what the upstreams are."""

    before_s: float = 5.0
    fault_s: float = 8.0
    after_s: float = 10.0
    load: Load = field(default_factory=Load)
    slots: int = 8
    pace_s: float = 0.02
    kind: str = "vllm"
    """What the upstreams say they are; ``llamacpp``: they are real ones."""
    timeouts: dict[str, Any] = field(default_factory=lambda: TIMEOUTS)
    continuation: str = "off"
    """``upstreams.<name>.continuation``."""
    config: dict[str, Any] = field(default_factory=dict)
    """Laid over the sections that a run writes."""


LLAMA_PHASE = {"floor_s": 5.0, "default_s": 10.0, "ceiling_s": 20.0}
LLAMA = Plan(
    load=Load(rate=0.6, tokens=8, is_text_known=False),
    slots=SEQUENCES,
    kind=LlamaProcess.kind,
    timeouts={**TIMEOUTS, "first_byte": LLAMA_PHASE, "gap": LLAMA_PHASE},
    before_s=10.0,
    after_s=15.0,
)
"""Two small models on the same two processors."""


def run(case: Case, plan: Plan, replicas: int, folder: Path) -> tuple[Figures, list[Seen]]:
    """Start everything, play, stop everything."""
    with ExitStack() as stack:
        names = (FAULTY, OTHER)[:replicas]
        engines: dict[str, Engine] = {}
        for name in names:
            engine = engine_of(plan)
            stack.callback(engine.kill)
            engine.start()
            engines[name] = engine
        config = folder / f"{case.name}-{replicas}.json"
        config.write_text(json.dumps(configuration(plan, engines)))
        log = folder / f"{case.name}-{replicas}.log"
        keys = {key_name(name): each.api_key for name, each in engines.items() if isinstance(each, LlamaProcess)}
        service = stack.enter_context(running.service(log, "--config", str(config), env=keys))
        figures, seen = asyncio.run(_play(case, plan, service, engines[FAULTY], replicas))
        stack.callback(lambda: _count_ends(figures, log))
    return figures, seen


def engine_of(plan: Plan) -> Engine:
    if plan.kind == LlamaProcess.kind:
        return LlamaProcess()
    return UpstreamProcess(slots=plan.slots, pace_s=plan.pace_s, kind=plan.kind)


def key_name(replica: str) -> str:
    return f"KEY_OF_{replica.upper()}"


def configuration(plan: Plan, engines: dict[str, Engine]) -> dict[str, Any]:
    replicas = [
        {"name": name, "url": each.url, "api_key_env": key_name(name)}
        if isinstance(each, LlamaProcess)
        else {"name": name, "url": each.url, "sequences": plan.slots}
        for name, each in engines.items()
    ]
    upstream = {"replicas": replicas, "continuation": plan.continuation}
    return {"upstreams": {"m": upstream}, "tail": {"timeouts": plan.timeouts}, **plan.config}


async def _play(case: Case, plan: Plan, service: Service, engine: Engine, replicas: int) -> tuple[Figures, list[Seen]]:
    for number in range(20):
        await ask(service.url, plan.load, Seen(f"warm-{number}", True, time.monotonic()))
    whole_s = plan.before_s + plan.fault_s + plan.after_s
    playing = asyncio.create_task(play(service.url, plan.load, whole_s, case.name))
    figures = Figures(case.name, replicas)
    await asyncio.sleep(plan.before_s)
    view = await asyncio.to_thread(service.view)
    figures.running_at_fault = view["replicas"][FAULTY]["in_flight"]
    broken_at = time.monotonic()
    await asyncio.to_thread(case.break_it, engine)
    await asyncio.sleep(plan.fault_s)
    await asyncio.to_thread(case.heal, engine)
    healed_at = time.monotonic()
    seen = await playing
    probes = 0 if plan.kind == LlamaProcess.kind else PROBES
    await asyncio.to_thread(_fill, figures, service, seen, (broken_at, healed_at), probes)
    return figures, seen


def _fill(figures: Figures, service: Service, seen: list[Seen], at: tuple[float, float], probes: int) -> None:
    broken_at, healed_at = at
    ends_at = time.monotonic() + 8.0
    while time.monotonic() < ends_at and _open(service.view()):
        time.sleep(0.2)
    view = service.view()
    figures.permit_leaks, figures.left_open = view["permit_leaks"], _open(view)
    rows = call(service.admin, "/admin/requests?limit=10000").json["requests"]
    other_of = {FAULTY: OTHER, OTHER: FAULTY} if figures.replicas > 1 else {}
    sent = attempts(rows, time.monotonic() - time.time(), other_of)
    traffic = traffic_times(sent, FAULTY, probes)
    figures.avoided_s = avoided_s(traffic, broken_at, healed_at)
    figures.relapses = relapses(traffic, broken_at, healed_at)
    figures.back_s = back_s(traffic, healed_at)
    figures.worked_again_s = worked_again_s(seen, healed_at)
    count(figures, seen)
    figures.failed = failures(seen, rows, broken_at)


def _open(view: dict[str, Any]) -> int:
    return int(view["open_requests"]) + int(view["permits"])


def _count_ends(figures: Figures, log: Path) -> None:
    figures.data_process_ends = log.read_text().count("data process:")
