"""One more attempt: only elsewhere, only once, only before the first byte, within the deadline and the allowance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.change import Drain
from tidegate.policy.decisions import Admit, Answer, Reason, Refuse, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.retries import RetriesConfig

A1, A2 = replica_config("a1"), replica_config("a2")
TWO = PathConfig(replicas=(A1, A2))
RETRIABLE = [outcome for outcome in Outcome if EFFECTS[outcome].retry]


def failed(config: PathConfig = TWO, outcome: Outcome = Outcome.CONNECT_FAILED, **fields: object) -> Events:
    """One request whose first attempt has failed and which is not decided again yet."""
    events = Events(Path(config, 0.0))
    assert isinstance(events.offer(**({"max_tokens": 10} | fields)), Admit)
    events.path.settle(events.live[0][1], outcome, events.now)
    return events


def again(events: Events, outcome: Outcome = Outcome.CONNECT_FAILED) -> Admit | Answer | Refuse:
    return events.path.again(events.live[0][0].id, outcome, events.now)


@pytest.mark.parametrize("outcome", RETRIABLE)
def test_a_retry_goes_to_another_replica(outcome: Outcome) -> None:
    for _ in range(5):
        events = failed(outcome=outcome)
        decision = again(events, outcome)
        assert isinstance(decision, Admit)
        assert decision.permit.replica != events.live[0][1].replica
        record = events.path.find(1)
        assert (record.attempts, record.live_permits, record.replica) == (2, 1, decision.permit.replica)


def test_only_what_has_produced_no_output_that_is_worth_anything_is_tried_again() -> None:
    assert set(RETRIABLE) == {
        Outcome.PUSHBACK,
        Outcome.CONNECT_FAILED,
        Outcome.ENGINE_ERROR,
        Outcome.INVALID_OUTPUT,
    }
    for outcome in set(Outcome) - set(RETRIABLE):
        with pytest.raises(ValueError, match="may not be tried again"):
            again(failed(outcome=outcome), outcome)


def test_there_is_one_retry_and_no_more() -> None:
    events = failed()
    decision = again(events)
    assert isinstance(decision, Admit)
    events.path.settle(decision.permit, Outcome.CONNECT_FAILED, events.now)
    with pytest.raises(ValueError, match="may not be tried again"):
        again(events)


def test_nothing_is_tried_again_while_it_runs_or_after_its_first_byte() -> None:
    events = Events(Path(TWO, 0.0))
    events.offer(max_tokens=10)
    with pytest.raises(ValueError, match="may not be tried again"):
        again(events)
    events.pass_time(1.0)
    events.first_token(0)
    events.path.settle(events.live[0][1], Outcome.ENGINE_ERROR, events.now)
    with pytest.raises(ValueError, match="may not be tried again"):
        again(events, Outcome.ENGINE_ERROR)


def test_a_single_replica_leaves_nowhere_to_go() -> None:
    events = failed(PathConfig(replicas=(A1,)))
    decision = again(events)
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.NO_REPLICA
    assert decision.retry_after_s is not None


@pytest.mark.parametrize("drained", [False, True])
def test_a_replica_that_is_down_or_drains_is_no_elsewhere(drained: bool) -> None:
    events = failed()
    other = "a2" if events.live[0][1].replica == "a1" else "a1"
    if drained:
        events.path.apply(Drain(other), events.now)
    else:
        events.observe(other, ready=False)
    decision = again(events)
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.NO_REPLICA


def test_a_retry_never_waits_for_a_place() -> None:
    events = Events(
        Path(PathConfig(replicas=(replica_config("a1", sequences=1), replica_config("a2", sequences=1))), 0.0)
    )
    events.offer(max_tokens=10)
    events.offer(max_tokens=10)
    events.path.settle(events.live[0][1], Outcome.CONNECT_FAILED, events.now)
    decision = again(events)
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.NO_REPLICA


def test_past_the_deadline_nothing_is_tried_again() -> None:
    events = failed(first_byte_by=3.0)
    events.now = 3.0
    decision = again(events)
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.DEADLINE_PASSED


def test_a_spent_allowance_refuses_and_time_fills_it_again() -> None:
    config = replace(TWO, retries=RetriesConfig(ratio=0.0, floor_per_s=1.0))
    events = Events(Path(config, 0.0))
    for number in range(11):
        events.offer(max_tokens=10)
        events.path.settle(events.live[0][1], Outcome.PUSHBACK, events.now)
        decision = again(events, Outcome.PUSHBACK)
        assert isinstance(decision, Admit if number < 10 else Refuse)
        if isinstance(decision, Admit):
            events.path.settle(decision.permit, Outcome.OK, events.now)
        else:
            assert decision.reason is Reason.RETRY_ALLOWANCE
        request, _ = events.live.pop()
        events.path.close(request.id, events.now)
    events.pass_time(1.0)
    events.offer(max_tokens=10)
    events.path.settle(events.live[0][1], Outcome.PUSHBACK, events.now)
    assert isinstance(again(events, Outcome.PUSHBACK), Admit)


def test_a_retry_that_finds_no_place_costs_nothing_and_one_that_is_made_earns_nothing() -> None:
    events = failed(PathConfig(replicas=(A1,)))
    left = events.path.allowance.left
    assert isinstance(again(events), Refuse)
    assert events.path.allowance.left == left
    events = failed()
    left = events.path.allowance.left
    assert isinstance(again(events), Admit)
    assert events.path.allowance.left == left - 1.0


def test_a_retry_of_a_model_that_was_removed_meanwhile_is_refused() -> None:
    events = failed()
    events.path.apply(PathConfig(), events.now)
    decision = again(events)
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.UNKNOWN_MODEL


def test_a_refused_retry_walks_the_ladder() -> None:
    events = failed(PathConfig(replicas=(A1,)), cache_key=b"k")
    events.path.remember(b"k", b"body", events.now)
    decision = again(events)
    assert isinstance(decision, Answer)
    assert (decision.body, decision.degraded, decision.reason) == (b"body", "cache", Reason.NO_REPLICA)


def test_a_request_is_charged_once_however_often_it_is_tried() -> None:
    events = failed(prompt_tokens=100)
    decision = again(events)
    assert isinstance(decision, Admit)
    events.path.settle(decision.permit, Outcome.OK, events.now, output_tokens=7)
    events.path.close(1, events.now)
    account = events.path.quota.accounts["default"]
    assert (account.settled, account.refunded, account.open, account.in_flight) == (107, 3, 0, 0)


def test_a_retry_passes_those_who_wait_since_it_cannot_wait_itself() -> None:
    config = PathConfig(replicas=(replica_config("a1", sequences=1), replica_config("a2", sequences=1)))
    events = Events(Path(config, 0.0))
    first, second = (events.offer(max_tokens=10) for _ in range(2))
    assert isinstance(first, Admit)
    assert isinstance(second, Admit)
    assert isinstance(events.offer(max_tokens=10), Wait)
    events.path.settle(second.permit, Outcome.OK, events.now)
    events.path.settle(first.permit, Outcome.CONNECT_FAILED, events.now)
    decision = events.path.again(1, Outcome.CONNECT_FAILED, events.now)
    assert isinstance(decision, Admit)
    assert decision.permit.replica == second.permit.replica


# ---- a stream that is continued --------------------------------------------------------------


def cut(config: PathConfig = TWO, outcome: Outcome = Outcome.CUT, **fields: object) -> Events:
    """One stream that ended so after its first token."""
    events = Events(Path(config, 0.0))
    assert isinstance(events.offer(**({"max_tokens": 10, "prompt_tokens": 100} | fields)), Admit)
    events.now = 1.0
    events.path.progress(events.live[0][1], Progress.FIRST_TOKEN, events.now)
    events.now = 3.0
    events.path.settle(events.live[0][1], outcome, events.now, output_tokens=4)
    return events


def go_on(events: Events, outcome: Outcome = Outcome.CUT, written_tokens: int = 4) -> Admit | Answer | Refuse:
    return events.path.again(events.live[0][0].id, outcome, events.now, written_tokens=written_tokens)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if EFFECTS[outcome].resume])
def test_a_cut_stream_goes_on_elsewhere_with_what_it_has_as_prompt(outcome: Outcome) -> None:
    events = cut(outcome=outcome)
    decision = go_on(events, outcome)
    assert isinstance(decision, Admit)
    permit, record = decision.permit, events.path.find(1)
    assert permit.replica != events.live[0][1].replica
    assert (permit.prompt_tokens, permit.expected_tokens) == (104, 6)
    assert (record.continuations, record.is_retried) == (1, False)
    events.now = 4.0
    events.path.progress(permit, Progress.FIRST_TOKEN, events.now)
    assert record.first_token_at == 1.0
    events.path.settle(permit, Outcome.OK, 5.0, output_tokens=10, prompt_tokens=100)
    assert events.path.close(1, 5.0).output_tokens == 10


def test_what_is_left_of_a_continued_stream_is_at_least_one_token() -> None:
    decision = go_on(cut(), written_tokens=10)
    assert isinstance(decision, Admit)
    assert decision.permit.expected_tokens == 1


def test_without_a_bound_a_continued_stream_has_none() -> None:
    events = cut(max_tokens=None)
    assert isinstance(go_on(events), Admit)
    assert events.live[0][0].max_tokens is None


def test_only_a_stream_that_has_begun_and_was_cut_can_go_on() -> None:
    for outcome in Outcome:
        if not EFFECTS[outcome].resume:
            with pytest.raises(ValueError, match="may not be tried again"):
                go_on(cut(outcome=outcome), outcome)
    with pytest.raises(ValueError, match="may not be tried again"):
        go_on(failed(outcome=Outcome.GAP_TIMEOUT), Outcome.GAP_TIMEOUT)


def test_a_stream_goes_on_a_few_times_and_is_not_answered_from_the_cache() -> None:
    events = cut(replace(TWO, retries=RetriesConfig(most_continuations=0)), cache_key=b"k")
    events.path.remember(b"k", b"stored", events.now)
    assert go_on(events) == Refuse(Reason.RETRY_ALLOWANCE)
    assert events.path.find(1).refused is Reason.RETRY_ALLOWANCE


def test_a_continuation_that_came_to_nothing_is_tried_once_more() -> None:
    events = cut()
    first = go_on(events)
    assert isinstance(first, Admit)
    events.path.settle(first.permit, Outcome.CONNECT_FAILED, events.now)
    second = go_on(events, Outcome.CONNECT_FAILED, written_tokens=1)
    assert isinstance(second, Admit)
    assert (second.permit.replica, second.permit.prompt_tokens) == (events.live[0][1].replica, 105)
    events.path.settle(second.permit, Outcome.CUT, events.now)
    assert go_on(events, written_tokens=1) == Refuse(Reason.RETRY_ALLOWANCE)
