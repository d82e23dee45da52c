"""Refused early where waiting is hopeless, never on a guess, and with an honest time to come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Refuse, Wait
from tidegate.policy.entry import jittered
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.line import FEW_SAMPLES
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig

ONE = PathConfig(replicas=(replica_config("a1", sequences=1),))
PER_S = 4000


def standing(served: int, *, left: int = 20) -> Events:
    """A queue from which 1000 tokens went every quarter of a second, so often, and in which some are left."""
    events = Events(Path(ONE, 0.0))
    for _ in range(left + 1):
        events.offer(prompt_tokens=1000, max_tokens=10)
    for _ in range(served):
        events.pass_time(0.25)
        events.settle(0, Outcome.OK)
        events.offer(prompt_tokens=1000, max_tokens=10)
    return events


def asked(events: Events, patience_s: float, prompt_tokens: int = 1000) -> Refuse | Wait:
    decision = events.offer(prompt_tokens=prompt_tokens, max_tokens=10, first_byte_by=events.now + patience_s)
    assert isinstance(decision, Refuse | Wait)
    return decision


def test_before_thirty_samples_nobody_is_refused_on_a_prediction() -> None:
    events = standing(FEW_SAMPLES - 1)
    flow = events.path.upstreams["a"].queue.lines["interactive"]._flows["default"]
    flow.tokens += 10**6
    assert isinstance(asked(events, 10.0), Wait)
    flow.tokens -= 10**6
    events.pass_time(0.25)
    events.settle(0, Outcome.OK)
    flow.tokens += 10**6
    decision = asked(events, 10.0)
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.DEADLINE_UNREACHABLE
    flow.tokens -= 10**6
    events.finish()


def test_one_whose_turn_would_come_too_late_is_refused_at_once_and_told_when_to_come_back() -> None:
    events = standing(40)
    assert events.path.upstreams["a"].tokens_per_s("interactive", events.now) == pytest.approx(PER_S, rel=0.1)
    due_before = sum(request.arrived_at + 10.0 <= events.now + 8.0 for request in events.waiting.values())
    decisions = [asked(events, 8.0) for _ in range(40)]
    waits = [isinstance(each, Wait) for each in decisions]
    # 8 s × 0.85 are 27 tickets' worth, give or take the rate.
    assert 25 <= due_before + waits.count(True) <= 30
    assert waits == sorted(waits, reverse=True)
    last = decisions[-1]
    assert isinstance(last, Refuse)
    assert last.reason is Reason.DEADLINE_UNREACHABLE
    assert events.records[-1].predicted_wait_s > 0.85 * 8.0


def test_retry_after_is_the_drain_of_the_queue_give_or_take_a_fifth() -> None:
    events = standing(40)
    line = events.path.upstreams["a"].queue.lines["interactive"]
    rate = events.path.upstreams["a"].tokens_per_s("interactive", events.now)
    assert rate is not None
    drain_s = line.tokens / rate
    decision = asked(events, 0.5, prompt_tokens=1)
    assert isinstance(decision, Wait)
    config = replace(ONE, queue=replace(ONE.queue, max_requests=1))
    events.apply(config)
    seen = []
    for _ in range(50):
        line._booked_until = 0.0
        refused = asked(events, 9.0)
        assert isinstance(refused, Refuse)
        assert refused.retry_after_s is not None
        seen.append(refused.retry_after_s)
    assert drain_s * 0.79 <= min(seen) < drain_s * 0.9
    assert drain_s * 1.1 < max(seen) <= drain_s * 1.21


def test_nobody_is_asked_back_sooner_than_in_half_a_second_or_later_than_in_a_minute() -> None:
    for draw in (0, 2**64 - 1):
        assert jittered(0.0, draw) == 0.5
        assert jittered(1e6, draw) == 60.0
        assert 8.0 <= jittered(10.0, draw) <= 12.0


def test_those_refused_in_one_burst_are_asked_back_one_after_the_other() -> None:
    events = standing(40)
    events.apply(replace(ONE, queue=replace(ONE.queue, max_requests=1)))
    seen = []
    for _ in range(20):
        refused = asked(events, 9.0)
        assert isinstance(refused, Refuse)
        seen.append(refused.retry_after_s or 0.0)
    assert seen[-1] - seen[0] > 0.5 * 19 * 1000 / PER_S


def test_at_its_turn_one_is_refused_whom_the_service_itself_would_make_late() -> None:
    events = Events(Path(ONE, 0.0))
    for _ in range(10):
        events.offer(prompt_tokens=1000, max_tokens=10, streaming=True)
        events.pass_time(0.1)
        events.first_token(0)
        events.settle(0, Outcome.OK)
    events.offer(prompt_tokens=1000, max_tokens=10)
    assert isinstance(asked(events, 4.0), Wait)
    replica = events.path.upstreams["a"].replicas[0]
    for _ in range(200):
        replica.first_token.learn(1000, 3.9)
    events.pass_time(0.5)
    events.settle(0, Outcome.OK)
    assert not events.live
    assert events.records[-1].refused is Reason.DEADLINE_UNREACHABLE


def test_an_idle_replica_is_tried_even_when_the_deadline_is_near() -> None:
    events = Events(Path(ONE, 0.0))
    assert isinstance(events.offer(max_tokens=10, first_byte_by=0.001), Admit)


def test_requests_that_come_late_move_the_margin_and_so_the_next_are_refused_earlier() -> None:
    events = Events(Path(replace(ONE, margin=replace(ONE.margin, window=3)), 1.0), now=1.0)
    for _ in range(3):
        events.offer(max_tokens=10)
        assert isinstance(asked(events, 5.0, 1), Wait)
        events.pass_time(1.0)
        events.settle(0, Outcome.OK)
        events.pass_time(5.0)
        events.first_token(0)
        events.settle(0, Outcome.OK)
    assert events.path.margin.value == pytest.approx(0.82)


def test_one_who_leaves_while_waiting_counts_as_late_and_one_without_a_limit_does_not_count() -> None:
    events = Events(Path(replace(ONE, margin=replace(ONE.margin, window=1)), 0.0), now=1.0)
    events.offer(max_tokens=10)
    events.offer(max_tokens=10)
    events.cancel(0)
    assert events.path.margin.value == 0.85
    assert isinstance(asked(events, 5.0, 1), Wait)
    events.cancel(0)
    assert events.path.margin.value == pytest.approx(0.82)


def test_one_who_never_waited_says_nothing_about_waiting() -> None:
    events = Events(Path(replace(ONE, margin=replace(ONE.margin, window=1)), 0.0), now=1.0)
    assert isinstance(events.offer(max_tokens=10, first_byte_by=2.0), Admit)
    events.pass_time(3.0)
    events.first_token(0)
    assert events.path.margin.value == 0.85


def test_a_permit_says_by_when_the_driver_must_act() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 10.0), now=10.0)
    for fields, first_byte_by, total_by in (
        ({}, 130.0, 910.0),
        ({"first_byte_by": 17.0}, 17.0, 910.0),
        ({"deadline_at": 50.0}, 50.0, 50.0),
        ({"streaming": False}, 910.0, 910.0),
        ({"streaming": False, "first_byte_by": 17.0}, 17.0, 910.0),
    ):
        decision = events.offer(max_tokens=10, **fields)
        assert isinstance(decision, Admit)
        permit = decision.permit
        assert (permit.first_byte_by, permit.total_by, permit.gap_s) == (first_byte_by, total_by, 60.0)


def test_under_an_objective_a_prompt_of_twice_the_usual_length_may_wait_a_quarter_as_long() -> None:
    """Without one it waits as long as anybody: then nobody has to be chosen."""
    decisions = {}
    for slo_s in (None, 10.0):
        events = standing(40)
        classes = events.path.config.classes
        own = {name: replace(each, ttft_slo_s=slo_s) for name, each in classes.classes.items()}
        events.apply(replace(events.path.config, classes=replace(classes, classes=own, long_threshold_tokens=10**6)))
        assert isinstance(events.offer(prompt_tokens=1000, max_tokens=10), Wait)
        decisions[slo_s] = events.offer(prompt_tokens=2000, max_tokens=10)
    assert isinstance(decisions[None], Wait)
    assert isinstance(decisions[10.0], Refuse)
    assert decisions[10.0].reason is Reason.QUEUE_TIMEOUT


def test_answers_that_keep_the_pace_of_their_class_let_a_replica_read_further_ahead() -> None:
    classes = ONE.classes.classes
    quick = {name: replace(each, tpot_slo_s=0.1) for name, each in classes.items()}
    config = replace(ONE, classes=replace(ONE.classes, classes=quick), prefill=PrefillConfig(floor_tokens=1))
    events = Events(Path(replace(config, replicas=(replica_config("a1", sequences=8),)), 0.0))
    replica = events.path.upstreams["a"].replicas[0]

    def answer(seconds: float, output_tokens: int, streaming: bool = True) -> None:
        events.offer(prompt_tokens=10, max_tokens=100, streaming=streaming)
        events.offer(prompt_tokens=10, max_tokens=100)
        if streaming:
            events.first_token(0)
        events.pass_time(seconds)
        for _ in range(len(events.live)):
            events.settle(0, Outcome.OK, output_tokens=output_tokens)

    for _ in range(40):
        answer(0.5, 11)
    grown_s = replica.horizon.value_s
    assert grown_s > 0.15
    for _ in range(40):
        answer(0.5, 7)
        answer(0.5, 11, streaming=False)
    assert replica.horizon.value_s >= grown_s, "too short to tell, or not a stream"
    for _ in range(40):
        answer(0.9, 11)
    assert replica.horizon.value_s == 0.15
    events.finish()


def test_a_wait_of_most_of_its_class_is_refused_at_once_where_nobody_has_said_what_it_bears() -> None:
    """Seven seconds of ten: an early no is worth more than a late one. Its client's own word goes before."""
    decisions = {}
    for share in (0.6, 1.0):
        events = standing(40, left=28)
        events.apply(replace(events.path.config, margin=replace(events.path.config.margin, class_share=share)))
        decisions[share] = events.offer(prompt_tokens=1000, max_tokens=10)
        assert isinstance(asked(events, 9.5), Wait), "its client would wait for so long"
    refused = decisions[0.6]
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.QUEUE_TIMEOUT
    assert isinstance(decisions[1.0], Wait)
