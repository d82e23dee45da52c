"""A second attempt beside one that is late: when, how often, and what its end means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.change import Drain
from tidegate.policy.decisions import Admit
from tidegate.policy.hedging import MOST, HedgeConfig, Hedging
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.request import NEVER
from tidegate.policy.retries import RetriesConfig

ON = HedgeConfig(enabled=True, budget=0.5)
CONFIG = PathConfig(replicas=(replica_config("a1"), replica_config("a2")), retries=RetriesConfig(hedge=ON))


def known(config: PathConfig = CONFIG) -> Events:
    """Forty first bytes came after 1 s."""
    events = Events(Path(config, 0.0))
    for _ in range(40):
        permit = ask(events)
        events.pass_time(1.0)
        events.path.progress(permit, Progress.FIRST_TOKEN, events.now)
        events.settle(len(events.live) - 1, Outcome.OK)
    return events


def ask(events: Events, **fields: Any) -> Permit:
    decision = events.offer(**({"prompt_tokens": 100, "max_tokens": 10} | fields))
    assert isinstance(decision, Admit)
    return decision.permit


def test_a_first_byte_that_is_among_the_latest_is_due_for_a_second_attempt_elsewhere() -> None:
    events = known()
    first = ask(events)
    assert first.hedge_at - events.now == pytest.approx(1.0, rel=0.06)
    admit = events.path.hedge(first.request_id, first.hedge_at)
    assert admit is not None
    assert admit.permit.replica != first.replica
    record = events.path.find(first.request_id)
    assert (record.live_permits, record.attempts) == (2, 2)
    assert events.path.view(events.now)["hedges"] == 1
    # One at a time.
    assert events.path.hedge(first.request_id, first.hedge_at) is None


def test_the_one_that_answers_is_on_record_and_the_other_says_nothing_of_its_replica() -> None:
    events = known()
    first = ask(events)
    second = events.path.hedge(first.request_id, first.hedge_at)
    assert second is not None
    now = first.hedge_at
    generations = [each.breaker.generation for each in events.path.upstreams["a"].replicas]
    events.path.settle(second.permit, Outcome.OUTRUN, now, still_running=True)
    events.path.progress(first, Progress.FIRST_TOKEN, now)
    events.path.settle(first, Outcome.OK, now + 1.0, output_tokens=10)
    record = events.path.close(first.request_id, now + 1.0)
    assert (record.replica, record.outcome, record.output_tokens) == (first.replica, Outcome.OK, 10)
    assert [each.breaker.generation for each in events.path.upstreams["a"].replicas] == generations
    assert events.path.view(now)["permits"] == 1
    events.path.progress(second.permit, Progress.ABORTED, now + 1.0)
    assert events.path.view(now)["permits"] == 0


def test_nothing_is_late_while_little_is_known_or_nobody_asks_or_nothing_streams() -> None:
    assert ask(Events(Path(CONFIG, 0.0))).hedge_at == NEVER
    assert ask(known(replace(CONFIG, retries=RetriesConfig()))).hedge_at == NEVER
    assert ask(known(), streaming=False).hedge_at == NEVER


def test_what_is_known_of_the_model_serves_for_a_length_that_is_new() -> None:
    assert ask(known(), prompt_tokens=3000).hedge_at < NEVER


def test_it_is_made_only_within_the_budget_and_where_there_is_room() -> None:
    events = known()
    first = ask(events)
    events.path.hedging.left = 0.9
    assert events.path.hedge(first.request_id, events.now) is None
    events.path.hedging.left = 1.0
    for _ in range(11):
        ask(events)
    assert events.path.hedge(first.request_id, events.now) is None


def test_it_is_not_made_where_no_other_replica_serves_or_the_answer_has_begun() -> None:
    events = known()
    first = ask(events)
    other = "a1" if first.replica == "a2" else "a2"
    events.path.apply(Drain(other, on=True), events.now)
    assert events.path.hedge(first.request_id, events.now) is None
    events.path.apply(Drain(other, on=False), events.now)
    events.path.progress(first, Progress.FIRST_TOKEN, events.now)
    assert events.path.hedge(first.request_id, events.now) is None


def test_a_model_that_is_gone_runs_nothing_twice() -> None:
    events = known()
    first = ask(events)
    events.path.apply(replace(CONFIG, replicas=(replica_config("b1", "b"),)), events.now)
    assert events.path.hedge(first.request_id, events.now) is None


def test_the_budget_is_a_share_of_the_requests_and_not_saved_up_for_ever() -> None:
    hedging = Hedging(HedgeConfig(enabled=True, budget=0.25))
    hedging.spend()
    assert not hedging.may(0.0)
    for _ in range(4):
        hedging.admitted()
    assert hedging.may(0.0)
    assert not hedging.may(0.7)
    for _ in range(100):
        hedging.admitted()
    assert (hedging.left, hedging.made) == (MOST, 1)


@pytest.mark.parametrize(
    "fields", [{"quantile": 0.4}, {"quantile": 1.0}, {"budget": 0.0}, {"budget": 0.6}, {"most_load": 0.0}]
)
def test_its_parameters_must_make_sense(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="hedges need"):
        HedgeConfig(**fields)  # type: ignore[arg-type]  # parameters by name, one type each
