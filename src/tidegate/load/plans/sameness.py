"""The same question again and again: is the answer the same, and is it in its form? (SPEC S2-37, S2-38)"""

from __future__ import annotations

from dataclasses import replace

from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.mixes import one_question
from tidegate.load.plans.three_phases import QUESTION_TOKENS
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import Fixed
from tidegate.load.workloads.recipe import Nonce, Recipe

RUNS = 100
PRESSED_RUNS = 400
PRESSED_USERS = 20
MOST_S = 1800.0
JSON_QUESTION = 'Answer with the JSON object {"colour": "blue"} and with nothing else.'


def consistency(options: PlanOptions) -> Plan:
    """Alone, beside 19 others, and as JSON. Without a nonce, if none is asked for: the question must be the same."""
    question = replace(one_question(QUESTION_TOKENS), nonce=Nonce.NONE)
    as_json = replace(question, label="json", text=JSON_QUESTION, prompt=Fixed(18), wants_json=True)
    return Plan(
        name="consistency",
        seed=options.seed,
        phases=(
            _asked("alone", replace(question, label="alone"), 1, RUNS, options),
            _asked("pressed", replace(question, label="pressed"), options.users(PRESSED_USERS), PRESSED_RUNS, options),
            _asked("json", as_json, 1, RUNS, options),
        ),
        objective=Objective(e2e_s=10.0),
        notes={"rows": "S2-37, S2-38", "cached": "caches may answer: what is asked is the same each time"},
    )


def _asked(name: str, recipe: Recipe, users: int, runs: int, options: PlanOptions) -> Phase:
    return Phase(
        name=name,
        kind=Kind.SINGLE if users == 1 else Kind.LOAD,
        source=Blend(name=name, recipes=(options.fitted(recipe),)),
        duration_s=options.duration(MOST_S),
        users=users,
        count=options.runs(runs),
    )
