"""The load generator against a process that is frozen: what a stall costs is seen from the schedule, on real time."""

from __future__ import annotations

import asyncio
from statistics import median

import pytest

from tests.load.asks_of_a_test import Even
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.crew import Crew
from tidegate.load.phase import Phase
from tidegate.load.played import Played
from tidegate.load.target import Target
from tidegate.testing.upstream_process import UpstreamProcess

pytestmark = pytest.mark.live

RATE = 50.0
STALL_S = 2.0


async def play(upstream: UpstreamProcess, phase: Phase) -> Played:
    """``phase``, in which the engine stands still from its second second on, for two."""
    target = Target(name="t", url=f"{upstream.url}/v1", model="m")

    async def stall() -> None:
        await asyncio.sleep(2.0)
        upstream.freeze()
        await asyncio.sleep(STALL_S)
        upstream.thaw()

    async with Crew([target], 1, processes=2) as crew:
        await crew.play(Phase(name="warm-up", source=Even(RATE), duration_s=0.5), target)
        played, _ = await asyncio.gather(crew.play(phase, target), stall())
        return played


def test_a_stall_is_in_the_figures_of_all_who_met_it() -> None:
    with UpstreamProcess(slots=400, pace_s=0.002, first_s=0.005) as upstream:
        opened = asyncio.run(play(upstream, Phase(name="open", source=Even(RATE), duration_s=6.0)))
        closed = asyncio.run(play(upstream, Phase(name="closed", source=Even(RATE), duration_s=6.0, users=2)))
    assert {sample.outcome for sample in (*opened.samples, *closed.samples)} == {ClientOutcome.OK}
    assert len(opened.samples) == 6 * RATE
    # Sent in time while nothing answered.
    assert median(opened.lags_s) < 0.01
    waited = sorted(sample.scheduled_e2e_s for sample in opened.samples if sample.scheduled_e2e_s > 0.2)
    # All who came in the stall but its last fifth of a second, from two seconds down to that.
    assert len(waited) == pytest.approx(RATE * (STALL_S - 0.2), rel=0.2)
    assert median(waited) == pytest.approx(STALL_S / 2 + 0.1, rel=0.25)
    # The two who waited for their answers asked nothing meanwhile, and two answers are all that is seen of it.
    assert sum(sample.scheduled_e2e_s > 0.5 for sample in closed.samples) == 2
