"""Kinds of requests that several plans draw from, and phases made of them."""

from __future__ import annotations

from tidegate.load.arrival_times import ArrivalTimes, Drawn
from tidegate.load.phase import Kind, Phase
from tidegate.load.plan_options import PlanOptions
from tidegate.load.rate_curve import RateCurve
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import Fixed, LogNormal, Uniform
from tidegate.load.workloads.overlong import overlong
from tidegate.load.workloads.recipe import Conversation, Recipe, SharedPrefix
from tidegate.simulate.arrivals import Kind as Component

STEPS = (10, 50, 100, 200, 500)
"""Users of a ramp's steps (SPEC S2-24)."""

CHAT = Recipe(label="chat", weight=0.6, prompt=LogNormal(200, 0.8, 16, 2000), output=LogNormal(96, 0.6, 16, 400))
DOCUMENT = Recipe(label="document", weight=0.2, prompt=Uniform(1500, 3500), output=Uniform(64, 300))
DIALOGUE = Recipe(
    label="dialogue",
    weight=0.2,
    prompt=LogNormal(60, 0.6, 8, 400),
    output=Uniform(32, 160),
    prefix=SharedPrefix(tokens=200, count=4),
    conversation=Conversation(Uniform(2, 6), open_sessions=32),
)
MIXED = (CHAT, DOCUMENT, DIALOGUE)
"""Random lengths and mixed contexts (SPEC S1-60)."""


def open_phase(
    name: str, recipes: tuple[Recipe, ...], arrivals: ArrivalTimes, options: PlanOptions, kind: Kind = Kind.LOAD
) -> Phase:
    """Requests at times of their own; ``arrivals`` are scaled already."""
    fitted = tuple(options.fitted(recipe) for recipe in recipes)
    return Phase(
        name=name,
        kind=kind,
        source=Blend(name=name, recipes=fitted, arrivals=arrivals),
        duration_s=arrivals.duration_s,
        rate_per_s=arrivals.mean_per_s,
    )


def steady_phase(name: str, recipes: tuple[Recipe, ...], curve: RateCurve, options: PlanOptions) -> Phase:
    """Poisson arrivals; ``curve`` is scaled already."""
    return open_phase(name, recipes, Drawn(curve), options)


def user_steps(
    recipes: tuple[Recipe, ...], seconds: float, options: PlanOptions, steps: tuple[int, ...] = STEPS
) -> tuple[Phase, ...]:
    """A closed loop for each number of users; what scaling makes equal is one step."""
    counts = sorted({options.users(count) for count in steps})
    fitted = tuple(options.fitted(recipe) for recipe in recipes)
    return tuple(
        Phase(
            name=f"users-{count}",
            kind=Kind.STEP,
            source=Blend(name=f"users-{count}", recipes=tuple(recipe.for_users(count) for recipe in fitted)),
            duration_s=options.duration(seconds),
            users=count,
        )
        for count in counts
    )


def recipe_of(kind: Component) -> Recipe:
    """A simulated mix's component, as requests."""
    return Recipe(label=kind.label, weight=kind.weight, prompt=Uniform(*kind.prompt), output=Uniform(*kind.output))


def with_overlong(recipes: tuple[Recipe, ...], options: PlanOptions) -> tuple[Recipe, ...]:
    """Those that do not fit beside the rest, by the wanted share; none where the context is not known."""
    share = options.overlong_share
    if options.context_tokens is None or share <= 0:
        return recipes
    rest = sum(recipe.weight for recipe in recipes)
    weight = rest * share / (1 - share)
    return (*recipes, overlong(options.context_tokens, weight, is_answered=options.is_overlong_answered))


def overlong_note(options: PlanOptions) -> str:
    if options.context_tokens is None:
        return "none: the target's context is not known"
    expected = "an answer" if options.is_overlong_answered else "a refusal"
    where = f"{options.overlong_share:.0%} of the soak, half of them just above {options.context_tokens} tokens"
    return f"{where}; each must get {expected}"


def one_question(tokens: int) -> Recipe:
    """The same each time but for its nonce (SPEC S1-55)."""
    return Recipe(label="single", prompt=Fixed(tokens), output=Fixed(64), text=QUESTION, is_same=True, keeps_text=True)


QUESTION = (
    "The words before this sentence, or behind the last one, mean nothing. Explain in three short sentences, in plain "
    "English and without a list, why the sky is blue by day and red in the evening. Begin with the word Light. "
)
