"""Several tenants on one service, one of them noisy (SPEC S1-54)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.load.arrival_times import Drawn
from tidegate.load.phase import Phase
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.mixes import CHAT, DIALOGUE, DOCUMENT
from tidegate.load.rate_curve import constant, spike
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.recipe import Recipe
from tidegate.load.workloads.together import Together

WHOLE_S = 900.0
NOISE_S = (300.0, 600.0)
NOISE_FACTOR = 20.0
SHAPE = 0.5


@dataclass(frozen=True, slots=True)
class Tenant:
    name: str
    share: float
    """Of the base rate."""
    recipes: tuple[Recipe, ...]
    objective: Objective
    is_noisy: bool = False


TENANTS = (
    Tenant("desk", 0.4, (CHAT, DIALOGUE), Objective(ttft_s=1.0, tpot_s=0.1)),
    Tenant("app", 0.3, (DIALOGUE,), Objective(ttft_s=2.0, tpot_s=0.1)),
    Tenant("reports", 0.2, (DOCUMENT,), Objective(e2e_s=30.0)),
    Tenant("noisy", 0.1, (CHAT, DOCUMENT), Objective(ttft_s=10.0), is_noisy=True),
)


def multi_tenant(options: PlanOptions) -> Plan:
    """From a third to two thirds of the time one tenant sends twenty times its share; the others must not notice."""
    rate_per_s = options.rate(4.0)
    begin_s, end_s, whole_s = (options.duration(each) for each in (*NOISE_S, WHOLE_S))
    parts = []
    for tenant in TENANTS:
        usual_per_s = rate_per_s * tenant.share
        curve = (
            spike(usual_per_s, NOISE_FACTOR, (begin_s, end_s), whole_s)
            if tenant.is_noisy
            else constant(usual_per_s, whole_s)
        )
        recipes = tuple(options.fitted(replace(recipe, tenant=tenant.name)) for recipe in tenant.recipes)
        parts.append(Blend(name=f"tenants/{tenant.name}", recipes=recipes, arrivals=Drawn(curve, SHAPE)))
    source = Together(tuple(parts))
    means = [part.arrivals.mean_per_s for part in parts if part.arrivals is not None]
    without = [tenant.name for tenant in TENANTS if tenant.name not in options.tenant_keys]
    return Plan(
        name="multi-tenant",
        seed=options.seed,
        phases=(
            Phase(name="tenants", source=source, duration_s=whole_s, rate_per_s=sum(means), spike=(begin_s, end_s)),
        ),
        objectives={tenant.name: tenant.objective for tenant in TENANTS},
        notes={
            "rows": "S1-54",
            "noise": f"noisy sends {NOISE_FACTOR:g} x its share from {begin_s:g} to {end_s:g} s",
            "keys": f"none for {', '.join(without)}: the target cannot tell them apart" if without else "one for each",
        },
    )
