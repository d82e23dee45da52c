"""The corpus of abnormal requests, as a plan (SPEC S2-28)."""

from __future__ import annotations

from tidegate.load.phase import Phase
from tidegate.load.plan import Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.workloads.abnormal_rounds import AbnormalRounds

ROUNDS = 3
USERS = 2
MOST_S = 1800.0


def abnormal(options: PlanOptions) -> Plan:
    source = AbnormalRounds(
        context_tokens=options.context_tokens,
        is_overlong_answered=options.is_overlong_answered,
        wants_codes=options.wants_codes,
    )
    rounds = max(1, round(ROUNDS * options.time_scale))
    phase = Phase(name="abnormal", source=source, duration_s=MOST_S, users=USERS, count=rounds * source.round_length())
    over_long = "none: the target's context is not known" if options.context_tokens is None else "two of them"
    return Plan(
        name="abnormal",
        seed=options.seed,
        phases=(phase,),
        notes={"rows": "S2-28, S2-39", "over_long": over_long, "rounds": f"{rounds}, by {USERS} users"},
    )
