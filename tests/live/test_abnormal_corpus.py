"""The corpus of abnormal requests against the service and its real engine: each gets what it must get."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.live import running
from tests.live.running import MODEL, Service
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.crew import Crew
from tidegate.load.named_plans import find_plan
from tidegate.load.plan_options import PlanOptions
from tidegate.load.sample import Sample
from tidegate.load.target import Target
from tidegate.load.workloads.abnormal_corpus import corpus

pytestmark = pytest.mark.live

CONTEXT = 2048


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Short questions must not teach it a timeout that the longest of the corpus cannot meet on a busy machine."""
    log = tmp_path_factory.mktemp("abnormal") / "serve.log"
    with running.service(log, "--set", "tail.timeouts.first_byte.floor_s=60") as started:
        yield started


def play(url: str) -> list[Sample]:
    plan = find_plan("abnormal", PlanOptions(context_tokens=CONTEXT, time_scale=0.34))
    target = Target(name="gate", url=f"{url}/v1", model=MODEL)

    async def main() -> list[Sample]:
        async with Crew([target], plan.seed, processes=1) as crew:
            return (await crew.play(replace(plan.phases[0], duration_s=240.0), target)).samples

    return asyncio.run(main())


def test_each_gets_what_it_must_get_and_the_service_answers_on(patient: Service) -> None:
    samples = play(patient.url)
    assert len(samples) == 2 * len(corpus(CONTEXT))
    wrong = {
        sample.extra["case"]: (sample.outcome.value, sample.status, sample.code)
        for sample in samples
        if sample.outcome not in {ClientOutcome.OK, ClientOutcome.EXPECTED}
    }
    # A small model may have nothing to say to what says nothing.
    unanswered = {case for case, (outcome, _, _) in wrong.items() if outcome == ClientOutcome.ABNORMAL}
    assert set(wrong) - unanswered == set(), wrong
    assert "probe" not in wrong
