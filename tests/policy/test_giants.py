"""Prompts that would stall everybody beside them: what counts as one, and when it goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events
from tidegate.policy.breaker import BreakerConfig
from tidegate.policy.change import Drain
from tidegate.policy.classes import ClassConfig, ClassesConfig
from tidegate.policy.decisions import Admit, Reason, Refuse, Wait
from tidegate.policy.giants import GiantsConfig, is_giant, is_quiet
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.reading import Capacity, ReplicaConfig
from tidegate.policy.replica import Replica

CONFIG = GiantsConfig()
GIANT = 12_000


def replica(token_s: float = 0.0, sequences: int | None = 256) -> Replica:
    made = Replica(
        ReplicaConfig(name="a1", upstream="a", capacity=Capacity(sequences=sequences)),
        LimitConfig(),
        PrefillConfig(),
        BreakerConfig(),
    )
    made.token_s = token_s
    return made


def wide(sequences: int) -> ReplicaConfig:
    capacity = Capacity(kv_tokens=10**6, sequences=sequences, context_tokens=100_000)
    return ReplicaConfig(name="a1", upstream="a", capacity=capacity)


def one_engine(**fields: object) -> Events:
    config = wide(100)
    return Events(Path(replace(PathConfig(replicas=(config,)), **fields), 0.0))  # type: ignore[arg-type]  # parts of the configuration by name, one type each


def busy(events: Events, running: int = 5) -> Events:
    """Five short ones run: more than four of a hundred."""
    for _ in range(running):
        assert isinstance(events.offer(prompt_tokens=100, max_tokens=10), Admit)
        events.first_token(0)
    return events


def test_a_giant_takes_the_fastest_replica_long_enough_and_is_longer_than_is_usual() -> None:
    slow, fast = replica(0.0001), replica(0.00005)
    assert not is_giant(CONFIG, 9_999, 100.0, [slow, fast])
    assert is_giant(CONFIG, 10_000, 100.0, [slow, fast])
    assert is_giant(CONFIG, 5_000, 100.0, [slow])
    assert not is_giant(CONFIG, 10_000, 2_501.0, [slow, fast])


def test_before_reading_speeds_are_known_the_tokens_decide() -> None:
    assert is_giant(CONFIG, 8_192, 100.0, [replica()])
    assert not is_giant(CONFIG, 8_191, 100.0, [replica()])
    assert is_giant(CONFIG, 8_192, 100.0, [])


def test_a_short_prompt_is_no_giant_however_slow_the_engine_and_none_is_when_that_is_off() -> None:
    assert not is_giant(CONFIG, 2_047, 1.0, [replica(1.0)])
    assert is_giant(CONFIG, 2_048, 1.0, [replica(1.0)])
    assert not is_giant(replace(CONFIG, enabled=False), GIANT, 1.0, [replica(1.0)])


def test_a_quiet_replica_runs_one_request_or_a_few_of_many() -> None:
    small, large, unknown = replica(sequences=4), replica(sequences=256), replica(sequences=None)
    for each, most in ((small, 1), (large, 10), (unknown, 1)):
        each.in_flight = most
        assert is_quiet(CONFIG, each)
        each.foreign_sequences = 1
        assert not is_quiet(CONFIG, each)
    large.in_flight = large.foreign_sequences = 0
    large.draining = True
    assert not is_quiet(CONFIG, large)


@pytest.mark.parametrize(
    "fields",
    [
        {"least_s": 0.0},
        {"hold_s": 0.0},
        {"least_tokens": 0},
        {"least_ratio": 0.5},
        {"quiet_share": -0.1},
        {"quiet_share": 1.1},
        {"hold_share": -0.1},
        {"hold_share": 1.0},
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="giants need"):
        GiantsConfig(**fields)  # type: ignore[arg-type]  # what is wrong is the point


def test_on_a_quiet_replica_a_giant_goes_at_once() -> None:
    events = one_engine()
    assert isinstance(events.offer(prompt_tokens=GIANT, max_tokens=10), Admit)
    events.finish()


def test_on_a_busy_one_it_stands_aside_while_others_pass_without_waiting() -> None:
    events = busy(one_engine())
    held = events.offer(prompt_tokens=GIANT, max_tokens=10)
    assert isinstance(held, Wait)
    assert held.reason is Reason.HELD
    for _ in range(40):
        assert isinstance(events.offer(prompt_tokens=100, max_tokens=10), Admit)
        events.first_token(0)
    assert [ticket.overtaken for ticket in events.path.upstreams["a"].queue.giants.tickets()] == [0]
    events.finish()


def test_it_goes_as_soon_as_few_enough_run() -> None:
    events = busy(one_engine())
    events.offer(prompt_tokens=GIANT, max_tokens=10)
    events.settle(0, Outcome.OK)
    assert not events.waiting
    assert max(permit.prompt_tokens for _, permit in events.live) == GIANT
    events.finish()


def test_its_hold_ends_by_the_clock_and_then_nobody_passes_it() -> None:
    events = busy(one_engine())
    events.offer(prompt_tokens=GIANT, max_tokens=10)
    events.pass_time(7.9)
    assert len(events.waiting) == 1
    events.pass_time(0.2)
    assert not events.waiting
    events.finish()


def test_when_its_hold_is_over_and_it_does_not_fit_newcomers_stand_behind_it() -> None:
    events = busy(one_engine())
    events.offer(prompt_tokens=2000, max_tokens=10)
    events.offer(prompt_tokens=GIANT, max_tokens=10)
    events.pass_time(8.1)
    assert len(events.waiting) == 1, "2000 tokens are still being read"
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait)
    assert len(events.waiting) == 2
    events.first_token(0)
    assert len(events.waiting) == 1, "the giant went first"
    events.finish()


def test_a_client_of_little_patience_has_its_giant_held_for_a_part_of_that_only() -> None:
    events = busy(one_engine())
    events.offer(prompt_tokens=GIANT, max_tokens=10, first_byte_by=2.0)
    events.pass_time(1.3)
    assert len(events.waiting) == 1
    events.pass_time(0.1)
    assert not events.waiting
    assert not events.records
    events.finish()


def test_a_giant_whose_client_cannot_be_served_in_time_is_refused_when_its_turn_comes() -> None:
    """Its hold has passed, its replica still reads, and the client's time runs out."""
    events = busy(one_engine())
    events.offer(prompt_tokens=2000, max_tokens=10)
    events.offer(prompt_tokens=GIANT, max_tokens=10, first_byte_by=2.0)
    events.pass_time(1.8)
    assert [record.refused for record in events.records] == [Reason.DEADLINE_UNREACHABLE]
    events.finish()


def test_under_an_objective_a_giant_that_others_cannot_bear_is_refused_by_its_length() -> None:
    classes = ClassesConfig(
        long_threshold_tokens=10**9,
        classes={name: replace(each, ttft_slo_s=2.0) for name, each in ClassesConfig().classes.items()},
    )
    events = one_engine(classes=classes, replicas=(wide(1),))
    for _ in range(20):
        events.offer(prompt_tokens=100, max_tokens=10)
    for _ in range(40):
        events.pass_time(0.02)
        events.settle(0, Outcome.OK)
        events.offer(prompt_tokens=100, max_tokens=10)
    assert isinstance(events.offer(prompt_tokens=100, max_tokens=10), Wait)
    assert isinstance(events.offer(prompt_tokens=GIANT, max_tokens=10), Refuse)
    events.finish()


def test_an_objective_that_no_giant_can_meet_does_not_cut_its_hold_short() -> None:
    classes = ClassesConfig(
        classes={name: replace(each, ttft_slo_s=1.0) for name, each in ClassesConfig().classes.items()}
    )
    events = busy(one_engine(classes=classes))
    events.offer(prompt_tokens=GIANT, max_tokens=10)
    events.pass_time(7.9)
    assert len(events.waiting) == 1
    events.pass_time(0.2)
    assert not events.waiting
    assert not events.records
    events.finish()


def test_a_giant_of_a_class_that_is_gone_is_held_as_an_ordinary_one() -> None:
    vip = ClassesConfig(classes={**ClassesConfig().classes, "vip": ClassConfig()})
    events = busy(one_engine(classes=vip), running=30)
    events.offer(prompt_tokens=GIANT, max_tokens=10, class_hint="vip")
    events.offer(prompt_tokens=GIANT, max_tokens=10, class_hint="batch")
    events.apply(replace(events.path.config, classes=ClassesConfig()))
    held = events.path.upstreams["a"].queue.giants.tickets()
    assert sorted(ticket.service_class for ticket in held) == ["batch", "interactive"]
    events.finish()


def test_no_replica_is_quiet_while_it_drains() -> None:
    events = one_engine()
    events.path.apply(Drain(replica="a1", on=True), 0.0)
    decision = events.offer(prompt_tokens=GIANT, max_tokens=10)
    assert isinstance(decision, Wait)
    events.path.apply(Drain(replica="a1", on=False), events.now)
    events.advance()
    assert not events.waiting
    events.finish()
