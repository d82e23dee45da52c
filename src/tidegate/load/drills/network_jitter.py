"""The network shakes; do clients and gateway try again, and is anything computed or charged twice (SPEC S1-67)?"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

from tidegate.load.drills.bar import Bar, figure, recovered
from tidegate.load.drills.drill import Drill
from tidegate.load.drills.fault_proxy import FaultProxy
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.impairment import Impairment
from tidegate.load.drills.jitter_fault import JITTER, proxies
from tidegate.load.drills.own_scene import own_of
from tidegate.load.drills.retrying_clients import RetryingClients, charged_calls, reused_tries
from tidegate.load.drills.scene import Scene
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.steady_load import SteadyLoad
from tidegate.load.sender import Sender

TO_CLIENTS = Impairment(delay_s=0.04, jitter_s=0.03, loss_share=0.02, reset_share=0.05)
"""Each way: a mobile network, where connections break often."""

LEAST_CALLS = 12


def on_packets(url: str) -> FaultProxy:
    return FaultProxy(url, wants_packets=True)


async def play(scene: Scene) -> None:
    own = own_of(scene)
    shaky = FaultProxy(own.gateway.url, 1, wants_packets=True)
    await shaky.start()
    scene.on_restore("the proxy before the gateway", shaky.close)
    sender = Sender(replace(scene.deployment.target, url=f"{shaky.url}/v1"), time.monotonic() - scene.now())
    scene.on_restore("its clients", sender.close)
    clients = RetryingClients(f"jitter-{time.time_ns() % 10**9}", lambda ask: sender.ask(ask, "jitter"))
    levels = {each.level for each in (shaky, *proxies(own))}
    scene.findings.notes.append(f"delay and loss were made on {' and '.join(sorted(levels))}")
    await scene.baseline()
    await scene.break_(JITTER)
    shaky.impair(TO_CLIENTS)
    await clients.run(_calls(scene).asks(2))
    await _count(scene, clients)
    await scene.restore()
    await scene.aftermath()


def _calls(scene: Scene) -> SteadyLoad:
    """As many as the steady load's, and enough that some connections are reset."""
    pace = scene.pace
    count = max(LEAST_CALLS, int(pace.rate_per_s * pace.fault_s))
    return SteadyLoad(name="call", rate_per_s=count / pace.fault_s, pace=pace, count=count)


async def _count(scene: Scene, clients: RetryingClients) -> None:
    own, calls, figures = own_of(scene), clients.calls, scene.findings.figures
    rows = await scene.deployment.rows()
    written = sum((each.ledger.answered_calls for each in proxies(own)), Counter[str]())
    computed = sum(written[call.name] > 1 for call in calls)
    resets = sum(each.resets for each in proxies(own))
    figures |= {
        "calls": len(calls),
        "calls_lost": sum(not call.is_answered for call in calls),
        "tries_again": sum(len(call.tries) - 1 for call in calls),
        "tries_reused": reused_tries(rows, calls),
        "calls_charged_twice": sum(count > 1 for count in charged_calls(rows, calls).values()),
        "calls_computed_twice": computed,
        "engine_resets": resets,
        "computed_twice_beyond_resets": max(0, computed - resets),
    }


def errors_beyond_resets(findings: Findings) -> float | None:
    """Of the steady clients, who do not try again."""
    resets = findings.figures.get("engine_resets")
    return None if resets is None else max(0.0, findings.errors - resets)


DRILL = Drill(
    name=JITTER,
    rows=("S1-67", "S2-32"),
    question="The network shakes: do clients and gateway try again, and is anything computed or charged twice?",
    fault=(
        "packets are late and lost between the gateway and its engines, and between some clients and the gateway; "
        "some connections are reset"
    ),
    restores="the proxies in between pass everything again",
    faults=(JITTER,),
    setup=Setup(between=on_packets),
    bars=(
        Bar(
            name="calls lost of clients that try again",
            row="S1-67",
            figure=figure("calls_lost"),
            most=0,
            hint="see what the last try got, in the gateway's log and in the records",
        ),
        Bar(
            name="tries again (fewer prove nothing)",
            row="S1-67",
            figure=figure("tries_again"),
            least=1,
            hint="a longer fault or more load resets more connections",
        ),
        Bar(
            name="calls charged twice",
            row="S1-67",
            figure=figure("calls_charged_twice"),
            most=0,
            hint="look at idempotency in the configuration, and at the time between the tries",
        ),
        Bar(
            name="calls computed twice without a reset between gateway and engine",
            row="S1-67",
            figure=figure("computed_twice_beyond_resets"),
            most=0,
            hint="look at retries.hedge and at idempotency.orphan_s",
        ),
        Bar(
            name="errors of clients that do not try again, beyond the connections reset behind the gateway",
            row="S1-67",
            figure=errors_beyond_resets,
            most=0,
            hint="look at the codes of the errors: timeouts want a longer tail.timeouts.first_byte.floor_s",
        ),
        recovered(5.0),
    ),
    play=play,
    needs_own="it stands between the gateway and its engines, and between clients and the gateway",
)
