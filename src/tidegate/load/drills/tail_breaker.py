"""Long prompts of one user time out again and again: is the user sent to the lighter model, and told so (S0-51)?

The source's own check sends 100 000 random characters, which exceed its model's context and must be refused at once.
These prompts stand above the threshold of class ``long`` and fit; what makes them time out is a slow engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.errors import EngineError
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.bar import Bar, figure
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.own_deployment import TIMEOUTS
from tidegate.load.drills.own_scene import change, order, own_of
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.stand_in import StandIn, paced
from tidegate.load.drills.steady_load import chat_body
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.testing.faults import Fault

TAIL, LIGHT = "tail", "tail-light"
USER_IP = "192.168.1.100"
"""As the source's log line has it (S0-52); told by ``x-forwarded-for``."""
TRIGGER = 5
"""S0-51: five in a row."""
LONG_WORDS, CONTEXT_TOKENS, THRESHOLD_TOKENS = 1500, 8192, 1024
FIRST_BYTE = {"floor_s": 2.0, "default_s": 3.0, "ceiling_s": 10.0}
HEALTHY_FIRST_S = 1.0
"""Until the first token of a healthy engine; ten times that with the delay (``testing.faults.SLOW_FACTOR``)."""
LINE = f"[DEGRADED] Switching to light_model for user_ip: {USER_IP}"
MOST_DIRECT_S = 1.5
"""S0-50: 99 % within 1.5 s on the light model."""


async def play(scene: Scene) -> None:
    light = await _start(scene, LIGHT, first_s=0.05)
    tail = await _start(scene, TAIL, first_s=HEALTHY_FIRST_S)
    replica = {"sequences": 8, "context_tokens": CONTEXT_TOKENS}
    await change(scene, {f"upstreams.{LIGHT}": {"replicas": [{"name": LIGHT, "url": light.url, **replica}]}})
    own = {"replicas": [{"name": TAIL, "url": tail.url, **replica}], "ladder": {"light_model": LIGHT}}
    await change(scene, {f"upstreams.{TAIL}": own})
    await scene.baseline()
    before, lines_before = await _ask(scene, 1), own_of(scene).gateway.log.count(LINE)
    await tail.fail(Fault.SLOW)
    scene.mark_broken()
    scene.on_restore("the mark on the user's address", lambda: _unmark(scene))
    triggering = await _ask(scene, TRIGGER)
    direct = await _ask(scene, 2)
    figures = figures_of(triggering, direct)
    figures["others_marked"] = others_marked(await order(own_of(scene), "GET", "/admin/marks"))
    figures["log_line"] = own_of(scene).gateway.log.count(LINE) - lines_before
    figures["of_class_long"] = of_class(await scene.deployment.rows(), "long")
    await tail.fail(Fault.NONE)
    await _unmark(scene)
    after = await _ask(scene, 1)
    figures["not_degraded"] = sum(each.outcome is ClientOutcome.OK for each in (*before, *after))
    scene.findings.figures |= figures
    await scene.restore()
    await scene.aftermath()


async def _start(scene: Scene, name: str, first_s: float) -> StandIn:
    engine = StandIn(name, model=name, kind="openai", first_s=first_s)
    scene.on_restore(f"the process of {name}", engine.close)
    await engine.start()
    return engine


async def _ask(scene: Scene, count: int) -> list[Sample]:
    """So many long prompts of the one user, one after the other."""
    sender = Sender(replace(scene.deployment.target, model=TAIL), time.monotonic() - scene.now())
    try:
        return [await sender.ask(long_ask(number, scene.pace.patience_s), TAIL) for number in range(count)]
    finally:
        await sender.close()


def long_ask(number: int, patience_s: float) -> Ask:
    """Above the threshold of class ``long``, and within the context."""
    text = f"{number} " + " ".join(f"word{index % 97}" for index in range(LONG_WORDS))
    return Ask(
        index=number,
        label=TAIL,
        body=chat_body(text, 8, True),
        headers=(("x-forwarded-for", USER_IP),),
        max_tokens=8,
        patience_s=patience_s,
    )


async def _unmark(scene: Scene) -> None:
    try:
        await order(own_of(scene), "DELETE", f"/admin/marks/source/{USER_IP}")
    except EngineError:
        return  # It has expired, or was never set.


def figures_of(triggering: Sequence[Sample], direct: Sequence[Sample]) -> dict[str, float | None]:
    """``triggering``: those that time out; ``direct``: those after them."""
    both = [*triggering, *direct]
    return {
        "asked": len(both),
        "unanswered": sum(not each.is_answered for each in both),
        "unlabelled": sum(each.is_answered and each.outcome is not ClientOutcome.DEGRADED for each in both),
        "triggering_longest_s": max((each.e2e_s for each in triggering), default=None),
        "direct_longest_s": max((each.e2e_s for each in direct), default=None),
    }


def others_marked(told: Mapping[str, Any]) -> int:
    """Marks on anybody else."""
    return sum(mark["key"] != USER_IP for mark in told["marks"])


def of_class(rows: Iterable[Mapping[str, Any]], service_class: str) -> int:
    return sum(row.get("upstream") == TAIL and row.get("service_class") == service_class for row in rows)


DRILL = Drill(
    name="tail-breaker",
    rows=("S0-51", "S0-52", "S0-103"),
    question="Long prompts of one user time out: does that user, and nobody else, get the lighter model's answers?",
    fault="the first token of a further model takes ten times as long, while one user sends long prompts to it",
    restores="the engine is fast again, the user's mark taken away, the two upstreams taken out of the configuration",
    faults=(),
    setup=Setup(
        engine=paced,
        config={
            "server": {"trusted_proxies": ["127.0.0.1"]},
            "shaping": {"long_threshold_tokens": THRESHOLD_TOKENS},
            "marks": {"scopes": ["source"], "trigger_count": TRIGGER},
            "ladder": {"slow_count": 1000},
            "tail": {"timeouts": {**TIMEOUTS, "first_byte": FIRST_BYTE}},
        },
    ),
    bars=(
        Bar(
            name="long prompts in class long",
            row="S0-51",
            figure=figure("of_class_long"),
            least=TRIGGER,
            hint="look at shaping.long_threshold_tokens",
        ),
        Bar(name="without an answer", row="S0-51", figure=figure("unanswered"), most=0, hint="look at ladder.order"),
        Bar(
            name="lesser answers without a label",
            row="S0-51",
            figure=figure("unlabelled"),
            most=0,
            hint="the engine was not slow enough to time out, or x-tidegate-degraded is missing",
        ),
        Bar(
            name="log lines [DEGRADED] for the user",
            row="S0-52",
            figure=figure("log_line"),
            least=1,
            hint="look at the gateway's log; marks.show_source changes how an address is shown",
        ),
        Bar(
            name="after five timeouts an answer takes",
            row="S0-50",
            figure=figure("direct_longest_s"),
            most=MOST_DIRECT_S,
            unit="s",
            hint="the mark was not set: look at marks.scopes, trigger_count and window_s",
        ),
        Bar(name="others that were marked", row="S0-51", figure=figure("others_marked"), most=0),
        Bar(
            name="answers of the full model before and after",
            row="S0-103",
            figure=figure("not_degraded"),
            least=2,
            hint="the way back is closed: look at GET /admin/marks and at ladder.slow_ratio",
        ),
        Bar(name="errors of everybody else", row="S0-51", figure=lambda findings: float(findings.errors), most=0),
    ),
    play=play,
    needs_own="it adds two models and slows one of them",
    broken_replicas=0,
    least_replicas=1,
)
