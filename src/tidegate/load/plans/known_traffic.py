"""Plans of traffic that is known beforehand: simulated scenarios, replayed files, prompts of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.given_prompts import read_prompts
from tidegate.load.workloads.length_draws import Fixed
from tidegate.load.workloads.recipe import Recipe
from tidegate.load.workloads.replay_file import read_rows
from tidegate.load.workloads.row_traffic import RowTraffic
from tidegate.load.workloads.traffic_row import TrafficRow, stretched
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.scenarios import find_scenario
from tidegate.simulate.visit import Demand
from tidegate.wire.header_names import DEADLINE_MS, SERVICE_CLASS

PATIENT_TPOTS = 2.0
"""A scenario's clients wait for the first token; ours for the whole answer, for which each token adds so many times the
scenario's objective."""
TAIL_S = 1.0
"""A phase of known times is so much longer than its last request's time."""
PROMPT_USERS = 4
PROMPT_OUTPUT_TOKENS = 256
"""Where a line of the file says no other bound."""
PROMPTS_MOST_S = 3600.0
SHARED = Recipe(label="", prompt=Fixed(1))
"""What all rows have in common; options fit it."""


def scenario_plan(name: str, options: PlanOptions) -> Plan:
    """The traffic of ``tidegate simulate NAME``, for real engines: times, lengths, tenants, deadlines, shared blocks.

    Raises ConfigError: no such scenario, or a wrong argument.
    """
    scenario = find_scenario(name).build(options.seed)
    rows = _sent(_rows(scenario), options)
    loop, burst = scenario.loop, scenario.burst
    duration_s = options.duration(loop.duration_s) if loop else max((row.at_s for row in rows), default=0.0) + TAIL_S
    phase = Phase(
        name="traffic",
        kind=Kind.BURST if burst else Kind.LOAD,
        source=RowTraffic(
            name=f"scenario/{scenario.name}",
            source=f"scenario {scenario.name} ({scenario.source})",
            rows=rows,
            recipe=options.fitted(SHARED),
            is_endless=loop is not None,
        ),
        duration_s=duration_s,
        users=options.users(loop.users) if loop else None,
        rate_per_s=None if loop else len(rows) / duration_s,
        spike=(options.duration(burst.start_s), options.duration(burst.end_s)) if burst else None,
    )
    return Plan(
        name=scenario.name,
        seed=options.seed,
        phases=(phase,),
        objective=Objective(ttft_s=scenario.slo.ttft_s, tpot_s=scenario.slo.tpot_s, e2e_s=scenario.done_within_s),
        notes={
            "scenario": f"{scenario.name}: {scenario.source}",
            "not_as_simulated": "faults are not made; clients do not call again; all requests go to the target's model",
            "answers": "bounded by what the scenario's model says",
        }
        | _chain_note(scenario),
    )


def replay_plan(file: str, options: PlanOptions) -> Plan:
    """Raises ConfigError: the file can't be read, or holds something else."""
    path = Path(file)
    rows = _sent(read_rows(path), options)
    duration_s = rows[-1].at_s + TAIL_S
    name = f"replay/{path.name}"
    source = RowTraffic(name=name, source=path.name, rows=rows, recipe=options.fitted(SHARED))
    phase = Phase(name="replay", source=source, duration_s=duration_s, rate_per_s=len(rows) / duration_s)
    return Plan(
        name=f"replay@{path.name}",
        seed=options.seed,
        phases=(phase,),
        notes={
            "rows": "S2-29",
            "replayed": f"{len(rows)} requests of {path.name}: their times and lengths, and words of our own",
        },
    )


def prompts_plan(file: str, options: PlanOptions) -> Plan:
    """Each prompt of a file once. Raises ConfigError: the file can't be read, or holds something else."""
    given = read_prompts(Path(file))
    recipe = options.fitted(Recipe(label="prompt", prompt=Fixed(1), output=Fixed(PROMPT_OUTPUT_TOKENS), given=given))
    phase = Phase(
        name="prompts",
        source=Blend(name="prompts", recipes=(recipe,)),
        duration_s=options.duration(PROMPTS_MOST_S),
        users=options.users(PROMPT_USERS),
        count=len(given.prompts),
    )
    notes = {"prompts": f"{len(given.prompts)} of {given.source}, each once"}
    return Plan(name=f"prompts@{given.source}", seed=options.seed, phases=(phase,), notes=notes)


def _sent(rows: Iterable[TrafficRow], options: PlanOptions) -> tuple[TrafficRow, ...]:
    """Stretched, and with their tenants' keys."""
    found = stretched(rows, options.scale, options.time_scale, options.seed)
    if not options.tenant_keys:
        return found
    return tuple(replace(row, headers=row.headers + options.key_headers(row.tenant)) for row in found)


def _rows(scenario: Scenario) -> list[TrafficRow]:
    links = [link for demand in scenario.demands for link in _chain(demand, scenario)]
    return [_row(at_s, demand, scenario) for at_s, demand in sorted(links, key=lambda link: link[0])]


def _chain(demand: Demand, scenario: Scenario) -> Iterator[tuple[float, Demand]]:
    """The calls of a chain at even distances: when the one before is answered is not known beforehand."""
    length, link = 0, demand.then
    while link is not None:
        length, link = length + 1, link.then
    step_s = (scenario.done_within_s or 0.0) / (length + 1)
    at_s, each = demand.at, demand
    yield at_s, each
    while each.then is not None:
        each = each.then
        at_s += step_s + each.at
        yield at_s, each


def _row(at_s: float, demand: Demand, scenario: Scenario) -> TrafficRow:
    patience_s = demand.patience_s + demand.output_tokens * scenario.slo.tpot_s * PATIENT_TPOTS
    headers: tuple[tuple[str, str], ...] = ()
    if demand.class_hint is not None:
        headers += ((SERVICE_CLASS.decode(), demand.class_hint),)
    if demand.worthless_after_s is not None:
        headers += ((DEADLINE_MS.decode(), f"{demand.worthless_after_s * 1000:.0f}"),)
        patience_s = demand.worthless_after_s
    return TrafficRow(
        at_s=at_s,
        prompt_tokens=demand.prompt_tokens,
        output_tokens=demand.output_tokens,
        label=demand.label or "request",
        tenant="" if demand.tenant == "default" else demand.tenant,
        blocks=demand.blocks,
        headers=headers,
        patience_s=patience_s,
    )


def _chain_note(scenario: Scenario) -> dict[str, str]:
    if not any(demand.then for demand in scenario.demands):
        return {}
    return {"chains": "their calls come at even distances, whether or not the one before was answered"}
