"""How a request gets each reason: one test for every member of the closed set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.change import Drain
from tidegate.policy.classes import BATCH, INTERACTIVE, ClassConfig
from tidegate.policy.decisions import Admit, Answer, Reason, Refuse, Wait
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.marks import Mark, MarkKind
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.request import Request

ONE = PathConfig(replicas=(replica_config("a1", sequences=1),))


def busy(config: PathConfig = ONE) -> Events:
    """The only place is taken."""
    events = Events(Path(config, 0.0))
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Admit)
    return events


def refused(events: Events, **fields: object) -> Refuse:
    decision = events.offer(**({"prompt_tokens": 10, "max_tokens": 10} | fields))
    assert isinstance(decision, Refuse)
    return decision


def waits(events: Events, **fields: object) -> Reason:
    decision = events.offer(**({"prompt_tokens": 10, "max_tokens": 10} | fields))
    assert isinstance(decision, Wait)
    return decision.reason


def last_refusal(events: Events) -> tuple[Reason | None, float]:
    record = events.records[-1]
    return record.refused, record.retry_after_s


# ---- refused at once ----------------------------------------------------------------------------


def test_unknown_model_names_those_that_exist_and_coming_back_is_useless() -> None:
    decision = refused(Events(Path(ONE, 0.0)), upstream="b")
    assert (decision.reason, decision.retry_after_s, decision.detail) == (
        Reason.UNKNOWN_MODEL,
        None,
        "Known models: a",
    )
    assert "none" in refused(Events(Path(PathConfig(), 0.0))).detail


def test_never_fits_when_the_prompt_alone_fills_the_context() -> None:
    events = Events(Path(ONE, 0.0))
    decision = refused(events, prompt_tokens=4096, prompt_exact=True)
    assert (decision.reason, decision.retry_after_s) == (Reason.NEVER_FITS, None)
    assert "4096 tokens, and the prompt has 4096" in decision.detail
    assert isinstance(events.offer(prompt_tokens=4095, prompt_exact=True, max_tokens=1), Admit)


def test_an_estimated_prompt_never_fits_only_beyond_its_uncertainty() -> None:
    events = Events(Path(ONE, 0.0))
    assert "about 5400" in refused(events, prompt_tokens=5400).detail
    assert isinstance(events.offer(prompt_tokens=5300, max_tokens=1), Admit)


def test_a_prompt_without_output_may_fill_the_whole_context() -> None:
    events = Events(Path(ONE, 0.0))
    assert refused(events, prompt_tokens=4097, prompt_exact=True, max_tokens=0).reason is Reason.NEVER_FITS
    assert isinstance(events.offer(prompt_tokens=4096, prompt_exact=True, max_tokens=0), Admit)


def test_a_replica_that_does_not_say_its_context_leaves_it_open() -> None:
    silent = replace(replica_config("a2"), capacity=replace(replica_config("a2").capacity, context_tokens=None))
    events = Events(Path(PathConfig(replicas=(replica_config("a1"), silent)), 0.0))
    assert isinstance(events.offer(prompt_tokens=6000, prompt_exact=True, max_tokens=10), Admit)


def test_pool_too_small_when_no_replica_could_ever_hold_the_reservation() -> None:
    events = Events(Path(ONE, 0.0))
    assert refused(events, prompt_tokens=10, sequences=2).reason is Reason.POOL_TOO_SMALL
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    decision = refused(events, prompt_tokens=3000, max_tokens=1000, sequences=3)
    assert (decision.reason, decision.retry_after_s) == (Reason.POOL_TOO_SMALL, None)
    assert "3 sequence(s)" in decision.detail


@pytest.mark.parametrize(
    ("kind", "key"),
    [(MarkKind.SESSION, "s"), (MarkKind.TENANT, "t"), (MarkKind.SOURCE, "10.0.0.1"), (MarkKind.MODEL, "a")],
)
def test_marked_until_the_mark_expires(kind: MarkKind, key: str) -> None:
    events = Events(Path(ONE, 0.0))
    events.path.marks.add(Mark(kind, key, "blocked", 8.0, "asked for by an operator"), events.now)
    fields = {"session": "s", "tenant": "t", "source": "10.0.0.1"}
    decision = refused(events, **fields)
    reason = Reason.MARKED if kind is MarkKind.MODEL else Reason.BLOCKED
    assert (decision.reason, decision.retry_after_s) == (reason, 8.0)
    assert decision.detail == f"This {kind.value} is marked blocked: asked for by an operator."
    other = events.offer(session="other", tenant="other", max_tokens=10)
    assert isinstance(other, Admit) is (kind is not MarkKind.MODEL)
    for index in range(len(events.live)):
        events.settle(index, Outcome.OK)
    events.pass_time(8.0)
    assert isinstance(events.offer(max_tokens=10, **fields), Admit)


def test_quota_when_a_tenant_has_as_many_open_as_it_may() -> None:
    events = Events(Path(replace(ONE, quota=QuotaConfig(max_in_flight=2)), 0.0))
    assert isinstance(events.offer(max_tokens=10, tenant="t"), Admit)
    assert isinstance(events.offer(max_tokens=10, tenant="t"), Wait)
    decision = refused(events, tenant="t")
    assert decision.reason is Reason.QUOTA
    assert "Tenant t has 2 requests open" in decision.detail
    assert decision.retry_after_s is not None
    assert isinstance(events.offer(max_tokens=10, tenant="u"), Wait)


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        (QueueConfig(max_requests=2), Reason.QUEUE_FULL),
        (QueueConfig(max_tokens=25), Reason.QUEUE_TOKENS),
        (QueueConfig(max_bytes=250), Reason.QUEUE_BYTES),
    ],
)
def test_each_bound_of_the_queue_has_its_reason(queue: QueueConfig, reason: Reason) -> None:
    events = busy(replace(ONE, queue=queue))
    for _ in range(2):
        waits(events, body_bytes=100)
    decision = refused(events, body_bytes=100)
    assert decision.reason is reason
    assert decision.retry_after_s is not None


def test_deadline_passed_when_it_came_too_late_to_begin_with() -> None:
    events = Events(Path(ONE, 0.0), now=5.0)
    for field in ("deadline_at", "first_byte_by"):
        decision = refused(events, **{field: 5.0})
        assert (decision.reason, decision.retry_after_s) == (Reason.DEADLINE_PASSED, None)
    assert isinstance(events.offer(max_tokens=10, deadline_at=5.1), Admit)


def test_deadline_unreachable_when_the_wait_uses_up_the_clients_patience() -> None:
    events = busy()
    assert waits(events, first_byte_by=4.0) is Reason.SEQUENCES
    events.pass_time(3.3)
    assert events.waiting
    events.pass_time(0.2)
    reason, retry_after_s = last_refusal(events)
    assert reason is Reason.DEADLINE_UNREACHABLE
    assert retry_after_s > 0


def test_queue_timeout_when_the_wait_is_as_long_as_the_class_allows() -> None:
    events = busy()
    waits(events)
    events.pass_time(9.9)
    assert events.waiting
    events.pass_time(0.2)
    assert last_refusal(events)[0] is Reason.QUEUE_TIMEOUT


def test_no_replica_when_none_is_up_for_as_long_as_the_request_may_wait() -> None:
    events = Events(Path(ONE, 0.0))
    events.observe("a1", ready=False)
    assert waits(events) is Reason.NO_REPLICA
    events.pass_time(10.0)
    assert last_refusal(events)[0] is Reason.NO_REPLICA


def test_no_replica_when_all_of_them_drain() -> None:
    events = Events(Path(ONE, 0.0))
    events.path.apply(Drain("a1"), 0.0)
    assert waits(events) is Reason.NO_REPLICA
    events.pass_time(10.0)
    assert last_refusal(events)[0] is Reason.NO_REPLICA


def test_a_replica_that_comes_up_in_time_takes_those_who_waited_for_it() -> None:
    events = Events(Path(ONE, 0.0))
    events.observe("a1", ready=False)
    waits(events)
    events.pass_time(5.0)
    events.observe("a1")
    assert len(events.live) == 1


# ---- why a ticket waits -------------------------------------------------------------------------


def test_behind_others_until_it_stands_first_and_then_what_really_held_it() -> None:
    events = busy()
    assert waits(events) is Reason.SEQUENCES
    assert waits(events) is Reason.BEHIND_OTHERS
    events.settle(0, Outcome.OK)
    events.settle(0, Outcome.OK)
    events.settle(0, Outcome.OK)
    assert [record.waited_for for record in events.records] == [None, Reason.SEQUENCES, Reason.SEQUENCES]


def test_slots_when_memory_is_short_though_places_are_free() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    assert isinstance(events.offer(prompt_tokens=4000, max_tokens=4000), Admit)
    assert waits(events, prompt_tokens=200, max_tokens=100) is Reason.SLOTS


def test_limit_when_the_replica_has_shown_to_bear_no_more() -> None:
    free = replace(replica_config("a1"), capacity=replace(replica_config("a1").capacity, sequences=None))
    config = PathConfig(replicas=(free,), limit=LimitConfig(minimum=1, initial=1))
    assert waits(busy(config)) is Reason.LIMIT
    assert isinstance(busy(replace(config, limit=LimitConfig(enabled=False))).offer(max_tokens=10), Admit)


def test_prefill_when_the_engine_has_prompts_enough() -> None:
    config = PathConfig(replicas=(replica_config("a1"),), prefill=PrefillConfig(floor_tokens=19))
    events = busy(config)
    assert waits(events, prompt_tokens=10) is Reason.PREFILL
    events.first_token(0)
    assert not events.waiting


def test_nobody_passes_one_who_only_waits_for_the_engine_to_read_on() -> None:
    config = PathConfig(replicas=(replica_config("a1"),), prefill=PrefillConfig(floor_tokens=100))
    events = busy(config)
    assert isinstance(events.offer(prompt_tokens=60, max_tokens=10), Admit)
    assert waits(events, prompt_tokens=50) is Reason.PREFILL
    assert waits(events, prompt_tokens=10, class_hint="batch") is Reason.BEHIND_OTHERS
    assert len(events.waiting) == 2


def test_an_answer_that_does_not_stream_never_waits_for_prefill_and_an_idle_engine_takes_any_prompt() -> None:
    config = PathConfig(replicas=(replica_config("a1"),), prefill=PrefillConfig(floor_tokens=100))
    assert isinstance(busy(config).offer(prompt_tokens=500, max_tokens=10, streaming=False), Admit)
    assert isinstance(Events(Path(config, 0.0)).offer(prompt_tokens=500, max_tokens=10), Admit)
    off = replace(config, prefill=PrefillConfig(enabled=False, floor_tokens=100))
    assert isinstance(busy(off).offer(prompt_tokens=500, max_tokens=10), Admit)


def test_breaker_when_one_replica_is_full_and_the_other_left_alone() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=1), replica_config("a2"))), 0.0))
    for _ in range(40):
        events.offer(prompt_tokens=10, max_tokens=10)
        outcome = Outcome.ENGINE_ERROR if events.live[0][1].replica == "a2" else Outcome.OK
        events.settle(0, outcome, retry=False)
    events.offer(prompt_tokens=10, max_tokens=10)
    reasons = {events.path.upstreams["a"].choose(Request(0, "a", 0.0, draw), 10, 0.0) for draw in (0, 0xFFFF)}
    assert reasons == {Reason.BREAKER, Reason.SEQUENCES}
    waits(events)
    events.pass_time(0.9)
    assert events.waiting
    events.pass_time(0.1)
    assert [permit.replica for _, permit in events.live] == ["a1", "a2"]
    assert events.live[1][1].probe


def test_retry_after_is_one_second_before_anything_is_known_give_or_take_a_fifth() -> None:
    events = busy(replace(ONE, queue=QueueConfig(max_requests=1)))
    waits(events)
    seen = [refused(events).retry_after_s or 0.0 for _ in range(200)]
    assert 0.8 <= min(seen) < 0.85
    assert 1.15 < max(seen) <= 1.2


def test_a_class_that_is_unknown_counts_as_none() -> None:
    events = Events(Path(ONE, 0.0))
    for hint, tokens, expected in (
        (None, 10, INTERACTIVE),
        (None, 2000, "long"),
        ("nonsense", 10, INTERACTIVE),
        (INTERACTIVE, 2000, "long"),
        (BATCH, 10, BATCH),
        (BATCH, 2000, BATCH),
    ):
        events.offer(prompt_tokens=tokens, max_tokens=10, class_hint=hint)
        events.settle(0, Outcome.OK)
        assert events.records[-1].service_class == expected


def test_each_class_waits_as_long_as_its_own_rules_say() -> None:
    classes = replace(
        ONE.classes, classes=ONE.classes.classes | {BATCH: ClassConfig(max_wait_s=3.0), INTERACTIVE: ClassConfig()}
    )
    events = busy(replace(ONE, classes=classes))
    waits(events, class_hint=BATCH)
    waits(events)
    events.pass_time(3.0)
    assert [request.class_hint for request in events.waiting.values()] == [None]


# ---- the ladder stands behind every refusal -----------------------------------------------------


def test_a_stored_answer_takes_the_place_of_a_refusal_and_says_so() -> None:
    events = busy(replace(ONE, queue=QueueConfig(max_requests=1)))
    waits(events)
    events.path.remember(b"k", b"body", events.now)
    events.pass_time(2.0)
    decision = events.offer(prompt_tokens=10, max_tokens=10, cache_key=b"k")
    assert decision == Answer(b"body", 2.0, "cache", Reason.QUEUE_FULL)
    record = events.records[-1]
    assert (record.refused, record.degraded) == (Reason.QUEUE_FULL, "cache")


def test_without_a_rung_that_serves_them_no_answers_are_kept() -> None:
    events = busy(replace(ONE, queue=QueueConfig(max_requests=1), ladder=LadderConfig(enabled=False)))
    events.path.remember(b"k", b"body", events.now)
    assert events.path.view(0.0)["cache"] == {"answers": 0, "bytes": 0}


def test_a_waiting_request_gets_the_stored_answer_when_its_time_is_over() -> None:
    events = busy()
    events.path.remember(b"k", b"body", events.now)
    waits(events, cache_key=b"k")
    events.pass_time(10.0)
    assert events.records[-1].degraded == "cache"


def test_nothing_can_mend_a_request_that_is_wrong() -> None:
    events = Events(Path(ONE, 0.0))
    events.path.remember(b"k", b"body", events.now)
    assert refused(events, upstream="b", cache_key=b"k").reason is Reason.UNKNOWN_MODEL
    assert refused(events, prompt_tokens=9000, cache_key=b"k").reason is Reason.NEVER_FITS


# ---- what the driver does wrong -----------------------------------------------------------------


def test_an_id_is_offered_once() -> None:
    path = Path(ONE, 0.0)
    path.offer(Request(1, "a", 0.0, 0), 0.0)
    with pytest.raises(ValueError, match="offered twice"):
        path.offer(Request(1, "a", 0.0, 0), 0.0)


def test_a_request_is_closed_after_its_last_attempt() -> None:
    events = busy()
    with pytest.raises(ValueError, match="1 live permit"):
        events.path.close(1, 0.0)


def test_a_ticket_that_was_decided_can_still_be_cancelled_without_harm() -> None:
    events = busy()
    waits(events)
    ticket = next(iter(events.waiting))
    events.settle(0, Outcome.OK)
    events.path.cancel(ticket, events.now)
    events.finish()
