"""Plans by name: ``NAME``, ``NAME@ARGUMENT``, or the path of a plan file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate.config.problem import suggestion
from tidegate.errors import ConfigError
from tidegate.load.plan import Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.three_phases import acceptance, quick, steady_load, three_phase
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
    if named.takes_rate and argument:
        options = replace(options, rate_per_s=positive_number(name, argument, 1.0))
    plan = named.build(options)
    return replace(plan, notes={**plan.notes, **options.notes()})
