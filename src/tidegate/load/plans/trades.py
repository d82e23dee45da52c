"""What real trades send: the requirements' reference workloads (SPEC S0-100 to S0-102, S1-62, S2-24, S2-54)."""

from __future__ import annotations

from dataclasses import replace

from tidegate.load.arrival_times import Drawn, Listed, Regular
from tidegate.load.phase import Kind, Phase
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plans.mixes import DIALOGUE, MIXED, open_phase, recipe_of, steady_phase, user_steps
from tidegate.load.rate_curve import constant, day, series, spike
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import Fixed, Uniform
from tidegate.load.workloads.recipe import Conversation, Recipe
from tidegate.load.workloads.together import Together
from tidegate.simulate.arrivals import Kind as Component
from tidegate.simulate.scenarios.campaign import MIX as CAMPAIGN
from tidegate.simulate.scenarios.essays import LONG, LONG_SHARE, SHORT
from tidegate.simulate.scenarios.video import FRAME_TOKENS, FRAMES_PER_S, WORTHLESS_AFTER_S
from tidegate.wire.header_names import DEADLINE_MS

SECONDS_PER_DAY = 86_400
RAG = Recipe(label="rag", prompt=Uniform(2800, 3200), output=Uniform(200, 500))
PRODUCT = (
    Recipe(label="product", weight=0.5, prompt=Uniform(80, 300), output=Uniform(48, 128)),
    Recipe(label="long", weight=0.2, prompt=Uniform(1000, 3000), output=Uniform(150, 400)),
    replace(DIALOGUE, weight=0.3),
)
AGENT_CALLS = 4
AGENT_PAUSE_S = 2.0
SUMMARY = Recipe(label="summary", prompt=Uniform(2000, 6000), output=Uniform(150, 300))
FRAME = Recipe(
    label="frame",
    prompt=Fixed(FRAME_TOKENS),
    output=Uniform(24, 36),
    headers=((DEADLINE_MS.decode(), f"{WORTHLESS_AFTER_S * 1000:.0f}"),),
)
LINEAR_TOKENS = (1_000, 2_000, 5_000, 10_000, 20_000)


def rag_3k(options: PlanOptions) -> Plan:
    """30 min per step, as the requirement may be read; the answer is wanted in 3 s."""
    return Plan(
        name="rag-3k",
        seed=options.seed,
        phases=user_steps((RAG,), 1800.0, options),
        objective=Objective(e2e_s=3.0),
        notes={"rows": "S2-24"},
    )


def two_peaks(options: PlanOptions) -> Plan:
    """A day in 48 minutes: an hour is two minutes long."""
    peak_per_s = options.rate(4.0)
    curve = day(peak_per_s / 4, peak_per_s, options.duration(2880.0))
    phase = open_phase("day", MIXED, Drawn(curve), options)
    return Plan(
        name="two-peaks",
        seed=options.seed,
        phases=(phase,),
        objective=Objective(ttft_s=2.0, tpot_s=0.1),
        notes={
            "rows": "S1-62",
            "day": f"midnight to midnight in {curve.duration_s:g} s; peaks at 10:00 and 20:00",
            "rates": f"{peak_per_s:g}/s at the peaks, a quarter of it in the other 18 h (the quarter is ours)",
        },
    )


def ecommerce(options: PlanOptions) -> Plan:
    rate_per_s = options.rate(3000.0)
    sessions = Conversation(Uniform(2, 6), open_sessions=max(32, round(rate_per_s)))
    recipes = (*PRODUCT[:2], replace(PRODUCT[2], conversation=sessions))
    return Plan(
        name="ecommerce-3000",
        seed=options.seed,
        phases=(steady_phase("sale", recipes, constant(rate_per_s, options.duration(120.0)), options),),
        objective=Objective(ttft_s=0.3),
        notes={"rows": "S0-100", "rate": f"{rate_per_s:g}/s, 20 % long, 30 % turns of a dialogue"},
    )


def video(options: PlanOptions) -> Plan:
    """Text in place of pictures: what is tried is the beat and the deadline. Scaling changes the number of streams."""
    streams = options.users(12)
    curve = constant(FRAMES_PER_S, options.duration(60.0))
    parts = tuple(
        Blend(
            name=f"video/{place}",
            recipes=(options.fitted(replace(FRAME, tenant=f"stream-{place}", patience_s=2.0)),),
            arrivals=Regular(curve, first=place / streams),
        )
        for place in range(streams)
    )
    phase = Phase(name="video", source=Together(parts), duration_s=curve.duration_s, rate_per_s=streams * FRAMES_PER_S)
    return Plan(
        name="video-12",
        seed=options.seed,
        phases=(phase,),
        objective=Objective(e2e_s=WORTHLESS_AFTER_S),
        notes={"rows": "S0-100, S0-132", "frames": f"{streams} streams x {FRAMES_PER_S:g}/s, worthless after 200 ms"},
    )


def agent_day(options: PlanOptions) -> Plan:
    """Calls of a chain are turns of a session, two seconds apart in the mean, whether or not the last was answered."""
    dialogues_per_s = options.rate(500_000 / SECONDS_PER_DAY)
    calls_per_s = dialogues_per_s * AGENT_CALLS
    chain = Conversation(Fixed(AGENT_CALLS), open_sessions=max(1, round(calls_per_s * AGENT_PAUSE_S)))
    recipe = Recipe(label="agent", prompt=Uniform(150, 500), output=Uniform(16, 64), conversation=chain)
    curve = constant(calls_per_s, options.duration(600.0))
    return Plan(
        name="agent-500k-day",
        seed=options.seed,
        phases=(steady_phase("agents", (recipe,), curve, options),),
        objective=Objective(e2e_s=0.5),
        notes={
            "rows": "S0-100",
            "dialogues": f"{dialogues_per_s:.3g}/s of {AGENT_CALLS} calls each",
            "objective": "a chain of four in 2 s (S0-133) is 0.5 s a call",
        },
    )


def finance(options: PlanOptions) -> Plan:
    """All at once when the figures are out, then as many users that go on asking."""
    users = options.users(300)
    wave_s, hold_s = options.duration(120.0), options.duration(300.0)
    wave = open_phase("release", (SUMMARY,), Listed((0.0,) * users, wave_s), options, Kind.BURST)
    hold = Phase(
        name="hold", source=Blend(name="hold", recipes=(options.fitted(SUMMARY),)), duration_s=hold_s, users=users
    )
    return Plan(
        name="finance-300",
        seed=options.seed,
        phases=(wave, hold),
        objective=Objective(ttft_s=5.0, e2e_s=30.0),
        notes={"rows": "S0-100", "at_once": f"{users} summaries, then {users} users"},
    )


def promo(options: PlanOptions) -> Plan:
    rate_per_s = options.rate(2.0)
    begin_s, end_s, whole_s = (options.duration(each) for each in (120.0, 180.0, 360.0))
    recipes = tuple(recipe_of(each) for each in CAMPAIGN)
    curve = spike(rate_per_s, 4.2, (begin_s, end_s), whole_s)
    phase = replace(open_phase("promo", recipes, Drawn(curve), options, Kind.BURST), spike=(begin_s, end_s))
    return Plan(
        name="promo-4.2x",
        seed=options.seed,
        phases=(phase,),
        objective=Objective(ttft_s=2.0, tpot_s=0.1),
        notes={"rows": "S0-101", "rate": f"{rate_per_s:g}/s, 4.2 x that from {begin_s:g} to {end_s:g} s"},
    )


def essay_evening(options: PlanOptions) -> Plan:
    """As it was tested (short essays), then as the evening is (a part of them long), at the same rate."""
    rate_per_s, seconds = options.rate(120.0), options.duration(180.0)
    short = recipe_of(Component("short", 1 - LONG_SHARE, *SHORT))
    long = recipe_of(Component("long", LONG_SHARE, *LONG))
    curve = constant(rate_per_s, seconds)
    return Plan(
        name="essay-evening",
        seed=options.seed,
        phases=(
            steady_phase("test", (short,), curve, options),
            steady_phase("evening", (short, long), series(curve, curve), options),
        ),
        objective=Objective(ttft_s=2.0, tpot_s=0.1),
        notes={"rows": "S0-102", "rate": f"{rate_per_s:g}/s; in the evening {LONG_SHARE:.0%} have 2000 characters"},
    )


def long_context(options: PlanOptions) -> Plan:
    """Two users and prompts of 1k to 20k tokens in turn: does latency grow in a line?"""
    longest = options.fitted(RAG).longest_prompt(32)
    fitting = [tokens for tokens in LINEAR_TOKENS if longest is None or tokens <= longest]
    lengths = fitting or [longest or 1]
    recipes = tuple(
        options.fitted(Recipe(label=f"input-{tokens}", prompt=Fixed(tokens), output=Fixed(32))) for tokens in lengths
    )
    phase = Phase(
        name="lengths",
        source=Blend(name="lengths", recipes=recipes),
        duration_s=options.duration(900.0),
        users=options.users(2),
    )
    left = [str(tokens) for tokens in LINEAR_TOKENS if tokens not in lengths]
    return Plan(
        name="long-context",
        seed=options.seed,
        phases=(phase,),
        objective=Objective(e2e_s=4.2),
        notes={"rows": "S2-27, S2-54", "left_out": f"{', '.join(left)} tokens: they do not fit" if left else "nothing"},
    )
