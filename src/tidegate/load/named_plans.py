"""Plans by name: ``NAME``, ``NAME@ARGUMENT``, or the path of a plan file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate.config.problem import suggestion
from tidegate.errors import ConfigError
from tidegate.load.plan import Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.oddities import abnormal
from tidegate.load.plans.tenancy import multi_tenant
from tidegate.load.plans.three_phases import acceptance, quick, steady_load, three_phase
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
from tidegate.simulate.scenarios.arguments import positive_number

Builder = Callable[[PlanOptions], Plan]


@dataclass(frozen=True, slots=True)
class NamedPlan:
    help: str
    build: Builder
    takes_rate: bool = True
    """Its argument is the base rate per second."""


PLANS: dict[str, NamedPlan] = {
    "three-phase": NamedPlan(
        "1000 single runs, steps of 10 to 500 users, a burst of 2 x, 30 min of mixed load with 5 % over-long; @RATE: "
        "of burst and soak",
        three_phase,
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
    "abnormal": NamedPlan("what no sound client sends, a sound question behind each", abnormal, False),
    "quick": NamedPlan("a minute of short chats: is everything in place? @RATE", quick),
}

PLAN_HELP: dict[str, str] = {name: plan.help for name, plan in PLANS.items()}


def find_plan(text: str, options: PlanOptions) -> Plan:
    """Raises ConfigError: no such plan (with those that are near), or a wrong argument."""
    name, _, argument = text.partition("@")
    named = PLANS.get(name)
    if named is None:
        hint = suggestion(name, PLANS) or f"; known: {', '.join(PLANS)}"
        raise ConfigError([f"unknown plan {name!r}{hint}; or give the path of a plan file"])
    if argument and not named.takes_rate:
        raise ConfigError([f"{text}: {name} takes no argument"])
    if argument:
        options = replace(options, rate_per_s=positive_number(name, argument, 1.0))
    plan = named.build(options)
    return replace(plan, notes={**plan.notes, **options.notes()})
