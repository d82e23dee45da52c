"""Plans by name: ``NAME``, ``NAME@ARGUMENT``, or the path of a plan file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate.config.problem import suggestion
from tidegate.errors import ConfigError
from tidegate.load.plan import Plan
from tidegate.load.plan_file import read_plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.calibrating import calibration
from tidegate.load.plans.known_traffic import prompts_plan, replay_plan, scenario_plan
from tidegate.load.plans.oddities import abnormal
from tidegate.load.plans.sameness import consistency
from tidegate.load.plans.tenancy import multi_tenant
from tidegate.load.plans.three_phases import acceptance, one_engine, quick, steady_load, three_phase
from tidegate.load.plans.trades import (
    agent_day,
    ecommerce,
    essay_evening,
    finance,
    long_context,
    promo,
    rag_3k,
    two_peaks,
    video,
)
from tidegate.simulate.scenarios import SCENARIO_HELP, SCENARIOS
from tidegate.simulate.scenarios.arguments import positive_number

PLAN_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class NamedPlan:
    help: str
    build: Callable[[PlanOptions], Plan]
    takes_rate: bool = True
    """Its argument is the base rate per second; else it has none."""


PLANS: dict[str, NamedPlan] = {
    "three-phase": NamedPlan(
        "1000 single runs, steps of 10 to 500 users, a burst of 2 x, 30 min of mixed load with 5 % over-long; @RATE: "
        "of burst and soak",
        three_phase,
    ),
    "one-engine": NamedPlan(
        "the same for one small engine in 40 min: 60 single runs, steps of 1 to 16 users, a burst, 30 min of soak",
        one_engine,
    ),
    "acceptance": NamedPlan(
        "10 min at the planned peak, 10 min at 1.5 x, a burst of 2 x, 30 min of mixed load; @RATE: the peak", acceptance
    ),
    "steady-load": NamedPlan("10 min of mixed load; @RATE", steady_load),
    "rag-3k": NamedPlan("RAG: inputs of about 3000 tokens, steps of 10 to 500 users, 30 min each", rag_3k, False),
    "two-peaks": NamedPlan("a day in 48 min with peaks at 10:00 and 20:00; @RATE: of the peaks", two_peaks),
    "ecommerce-3000": NamedPlan("3000 product texts a second, 20 % long, 30 % turns of dialogues; @RATE", ecommerce),
    "video-12": NamedPlan("12 streams x 25 frames a second (as text), worthless after 200 ms", video, False),
    "agent-500k-day": NamedPlan("500 000 dialogues a day, four calls each; @RATE: dialogues per second", agent_day),
    "finance-300": NamedPlan("300 summaries at once, then 300 users", finance, False),
    "multi-tenant": NamedPlan("four tenants, one sends 20 x its share for a third of 15 min; @RATE", multi_tenant),
    "promo-4.2x": NamedPlan("a campaign of 4.2 x the base rate for a minute; @RATE: the base", promo),
    "essay-evening": NamedPlan("120 essays a second, in the evening 19 % of them long; @RATE", essay_evening),
    "long-context": NamedPlan("inputs of 1k to 20k tokens: does latency grow in a line?", long_context, False),
    "consistency": NamedPlan("one question alone, beside 19 others, and as JSON: same answers?", consistency, False),
    "abnormal": NamedPlan("what no sound client sends, a sound question behind each", abnormal, False),
    "calibration": NamedPlan("what tidegate simulate calibrate fits an engine's costs to", calibration, False),
    "quick": NamedPlan("a minute of short chats: is everything in place? @RATE; without it as two users showed", quick),
}

WITH_TEXT: dict[str, tuple[str, Callable[[str, PlanOptions], Plan]]] = {
    "replay": ("@FILE: the times and lengths of a load run's records, a log or JSON lines, other words", replay_plan),
    "prompts": ("@FILE: each prompt of a file of JSON lines once, by four users", prompts_plan),
    "scenario": ("@NAME: a simulated scenario whose name a plan has too", scenario_plan),
}

PLAN_HELP: dict[str, str] = {
    **{name: plan.help for name, plan in PLANS.items()},
    **{name: text for name, (text, _) in WITH_TEXT.items()},
    **{name: f"traffic of the scenario: {text}" for name, text in SCENARIO_HELP.items() if name not in PLANS},
}

SUITE = (
    "quick", "three-phase", "acceptance", "rag-3k", "two-peaks", "ecommerce-3000", "video-12", "agent-500k-day",
    "finance-300", "multi-tenant", "promo-4.2x", "essay-evening", "long-context", "consistency",
    "abnormal",
)  # fmt: skip
"""In this order, with one seed (SPEC S0-99)."""


def find_plan(text: str, options: PlanOptions) -> Plan:
    """Raises ConfigError: no such plan (with the nearest that there are), a wrong argument, a faulty file."""
    name, _, argument = text.partition("@")
    if name in PLANS:
        plan = _of_rate(name, argument, options)
    elif name in WITH_TEXT:
        help_text, build = WITH_TEXT[name]
        if not argument:
            raise ConfigError([f"{name}: write {name}{help_text.partition(':')[0]}"])
        plan = build(argument, options)
    elif name in SCENARIOS:
        plan = scenario_plan(text, options)
    elif text.endswith(PLAN_ENDINGS) or Path(text).is_file():
        plan = read_plan(Path(text), options)
    else:
        near = suggestion(name, PLAN_HELP) or f"; known: {', '.join(PLAN_HELP)}"
        raise ConfigError([f"unknown plan {name!r}{near}; or give the path of a plan file (.yaml)"])
    return replace(plan, notes={**plan.notes, **options.notes()})


def find_suite(options: PlanOptions) -> tuple[Plan, ...]:
    """The whole evaluation, one plan after the other."""
    return tuple(find_plan(name, options) for name in SUITE)


def _of_rate(name: str, argument: str, options: PlanOptions) -> Plan:
    named = PLANS[name]
    if argument and not named.takes_rate:
        raise ConfigError([f"{name}@{argument}: {name} takes no argument"])
    if argument:
        options = replace(options, rate_per_s=positive_number(name, argument, 1.0))
    return named.build(options)
