"""What a request gets instead of a refusal, or of a long wait: every rung, through ``Path``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.answers import AnswersConfig
from tidegate.policy.classes import ClassConfig, ClassesConfig
from tidegate.policy.decisions import Admit, Alteration, Answer, Reason, Refuse, Wait
from tidegate.policy.ladder import LadderConfig, Rung, SimplifyConfig
from tidegate.policy.limits.per_model import ModelConfig, ModelsConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.marks import HIGH_RISK, Mark, MarkKind
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.reading import Reading
from tidegate.policy.record import Record
from tidegate.policy.request import Request

LADDER = LadderConfig(light_model="light", standby="spare")
CONFIG = PathConfig(
    replicas=(
        replica_config("a1", sequences=1),
        replica_config("l1", "light", sequences=1),
        replica_config("s1", "spare", sequences=1),
    ),
    queue=QueueConfig(max_requests=1),
    prefill=PrefillConfig(enabled=False),
    ladder=LADDER,
)
RATED = ModelsConfig(named={"a": ModelConfig(tokens_per_minute=400)})
"""An answer of 256 tokens fits into the model's rate, one of 500 does not."""
SMALL = {"prompt_tokens": 100, "max_tokens": 10}
"""Nothing to simplify in it."""


def events_of(config: PathConfig = CONFIG) -> Events:
    return Events(Path(config, 0.0))


def full(config: PathConfig = CONFIG) -> Events:
    """One request runs on ``a1`` and one waits for it, so that the next is refused."""
    events = events_of(config)
    assert isinstance(events.offer(**SMALL), Admit)
    assert isinstance(events.offer(**SMALL), Wait)
    return events


def orders(*rungs: Rung) -> PathConfig:
    return replace(CONFIG, ladder=replace(LADDER, order=(*rungs, Rung.ERROR)))


def lines(events: Events) -> list[str]:
    return [notice.text for notice in events.path.marks.notices.take()]


# ---- the rungs -------------------------------------------------------------------------------


def test_a_stored_answer_is_the_first_thing_that_is_tried() -> None:
    events = full()
    events.path.remember(b"k", b"body", 0.0)
    events.now = 2.0
    assert events.offer(**SMALL, cache_key=b"k") == Answer(b"body", 2.0, "cache", Reason.QUEUE_FULL)
    record = events.records[-1]
    assert (record.degraded, record.refused, record.attempts) == ("cache", Reason.QUEUE_FULL, 0)
    assert lines(events) == ["[DEGRADED] Switching to cache_fallback for model: a"]


def test_the_lighter_model_runs_what_would_be_refused_under_its_own_name() -> None:
    events = full()
    decision = events.offer(**SMALL)
    assert isinstance(decision, Admit)
    assert (decision.permit.upstream, decision.permit.replica, decision.degraded) == ("light", "l1", "light_model")
    assert lines(events) == ["[DEGRADED] Switching to light_model for model: a"]
    record = events.path.find(3)
    assert (record.model, record.request.upstream, record.refused) == ("a", "light", Reason.QUEUE_FULL)
    events.path.settle(decision.permit, Outcome.OK, 1.0, output_tokens=5, prompt_tokens=100)
    closed = events.path.close(3, 1.0)
    assert (closed.degraded, closed.outcome) == ("light_model", Outcome.OK)


def test_when_that_is_full_too_the_standby_runs_it_and_then_the_client_is_told() -> None:
    events = full(orders(Rung.LIGHT, Rung.STANDBY))
    degraded = []
    for _ in range(3):
        decision = events.offer(**SMALL)
        degraded.append(decision.degraded if isinstance(decision, Admit) else decision)
    # The second waits for the lighter model, whose queue is empty; the third finds that full.
    assert degraded[0] == "light_model"
    assert isinstance(degraded[1], Wait)
    assert degraded[2] == "standby"
    refused = events.offer(**SMALL)
    assert isinstance(refused, Wait)
    assert events.path.find(6).request.upstream == "spare"
    last = events.offer(**SMALL)
    assert isinstance(last, Refuse)
    assert last.reason is Reason.QUEUE_FULL
    assert events.records[-1].degraded is None


def test_a_simpler_answer_of_the_same_model_is_shorter_and_says_so() -> None:
    config = orders(Rung.SIMPLIFY)
    simplify = SimplifyConfig(max_tokens=50, drop_tools=True, keep_messages=3)
    config = replace(config, ladder=replace(config.ladder, simplify=simplify), models=RATED)
    events = events_of(config)
    decision = events.offer(prompt_tokens=100, max_tokens=500)
    assert isinstance(decision, Admit)
    assert decision.degraded == "simplify_output"
    assert decision.alteration == Alteration(50, drop_tools=True, keep_messages=3)
    assert decision.permit.expected_tokens == 50
    assert lines(events) == ["[DEGRADED] Switching to simplify_output for model: a"]
    record = events.path.find(1)
    assert (record.charged_tokens, record.charged_to) == (150, "a")


def test_who_has_just_come_does_not_pass_those_who_wait_by_asking_for_less() -> None:
    events = events_of(replace(orders(Rung.SIMPLIFY), replicas=(replica_config("a1", sequences=9, kv_tokens=1024),)))
    assert isinstance(events.offer(prompt_tokens=100, max_tokens=300), Admit)
    assert isinstance(events.offer(prompt_tokens=100, max_tokens=800), Wait)
    refused = events.offer(prompt_tokens=100, max_tokens=300)
    assert isinstance(refused, Refuse)
    assert events.records[-1].request.max_tokens == 300


def test_who_has_waited_in_vain_may_get_a_shorter_answer_at_once() -> None:
    config = replace(orders(Rung.SIMPLIFY), replicas=(replica_config("a1", sequences=9, kv_tokens=1024),))
    patient = ClassesConfig().classes | {"interactive": ClassConfig(max_wait_s=5.0)}
    config = replace(config, classes=ClassesConfig(classes=patient))
    events = events_of(config)
    assert isinstance(events.offer(prompt_tokens=100, max_tokens=300), Admit)
    assert isinstance(events.offer(prompt_tokens=100, max_tokens=800), Wait)
    events.pass_time(6.0)
    assert not events.waiting
    _, permit = events.live[-1]
    assert (permit.request_id, permit.expected_tokens) == (2, 256)
    assert events.path.find(2).degraded == "simplify_output"


def test_a_shorter_answer_that_would_still_be_too_late_is_none() -> None:
    config = replace(orders(Rung.SIMPLIFY), models=RATED)
    events = events_of(config)
    for replica in events.path.upstreams["a"].replicas:
        for _ in range(10):
            replica.whole.learn(10, 100.0)
    refused = events.offer(prompt_tokens=100, max_tokens=900, deadline_at=5.0)
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.MODEL_RATE
    assert events.records[-1].request.max_tokens == 900


# ---- who may not -----------------------------------------------------------------------------


def test_who_has_used_up_its_quota_gets_a_stored_answer_and_nothing_that_an_engine_has_to_write() -> None:
    events = events_of(replace(CONFIG, quota=QuotaConfig(requests_per_minute=1)))
    assert isinstance(events.offer(**SMALL), Admit)
    refused = events.offer(**SMALL)
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.QUOTA
    events.path.remember(b"k", b"body", 0.0)
    assert isinstance(events.offer(**SMALL, cache_key=b"k"), Answer)


def test_a_lesser_answer_is_charged_like_any_other_and_not_given_on_credit() -> None:
    models = ModelsConfig(named={"light": ModelConfig(requests_per_minute=1)})
    events = events_of(replace(orders(Rung.LIGHT), models=models))
    events.path.marks.add(Mark(MarkKind.MODEL, "a", "broken", 99.0, "told by an operator"), events.now)
    assert isinstance(events.offer(**SMALL), Admit)
    refused = events.offer(**SMALL)
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.MARKED


def test_a_model_that_has_used_up_its_rate_leaves_the_rest_to_the_lighter_one() -> None:
    models = ModelsConfig(named={"a": ModelConfig(requests_per_minute=1)})
    events = events_of(replace(orders(Rung.LIGHT), models=models))
    events.offer(**SMALL)
    decision = events.offer(**SMALL)
    assert isinstance(decision, Admit)
    assert decision.permit.upstream == "light"
    assert events.path.find(2).charged_to == "light"


def test_a_deadline_that_is_over_is_over_on_every_rung() -> None:
    events = events_of(orders(Rung.LIGHT))
    events.now = 2.0
    refused = events.offer(**SMALL, deadline_at=1.0)
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.DEADLINE_PASSED


def test_a_prompt_that_is_too_long_for_the_lighter_model_stays_where_it_is() -> None:
    replicas = (CONFIG.replicas[0], replica_config("l1", "light", context_tokens=50))
    events = full(replace(orders(Rung.LIGHT), replicas=replicas))
    assert isinstance(events.offer(**SMALL), Refuse)


def test_a_lighter_model_under_a_mark_is_no_help() -> None:
    events = full(orders(Rung.LIGHT))
    events.path.marks.add(Mark(MarkKind.MODEL, "light", "broken", 99.0, "told by an operator"), events.now)
    assert isinstance(events.offer(**SMALL), Refuse)


def test_a_lighter_model_that_does_not_serve_is_no_help() -> None:
    events = full(orders(Rung.LIGHT))
    events.path.observe("l1", Reading(at=0.0, ready=False), 0.0)
    assert isinstance(events.offer(**SMALL), Refuse)


@pytest.mark.parametrize(
    "ladder",
    [
        replace(LADDER, enabled=False),
        replace(LADDER, order=(Rung.ERROR,)),
        replace(LADDER, light_model=None, standby=None),
        replace(LADDER, light_model="a", standby="nowhere"),
    ],
)
def test_without_a_rung_the_refusal_is_honest(ladder: LadderConfig) -> None:
    assert isinstance(full(replace(CONFIG, ladder=ladder)).offer(**SMALL), Refuse)


def test_a_model_has_its_own_ladder() -> None:
    models = ModelsConfig(ladders={"a": replace(LADDER, order=(Rung.STANDBY, Rung.ERROR))})
    decision = full(replace(CONFIG, ladder=LadderConfig(), models=models)).offer(**SMALL)
    assert isinstance(decision, Admit)
    assert decision.degraded == "standby"


# ---- marks -----------------------------------------------------------------------------------


def test_a_session_at_high_risk_goes_straight_to_the_lighter_model() -> None:
    events = events_of()
    events.path.marks.add(Mark(MarkKind.SOURCE, "192.168.1.100", HIGH_RISK, 99.0, "5 timeouts within 60 s"), events.now)
    lines(events)
    decision = events.offer(**SMALL, source="192.168.1.100")
    assert isinstance(decision, Admit)
    assert decision.degraded == "light_model"
    assert lines(events) == ["[DEGRADED] Switching to light_model for user_ip: 192.168.1.100"]


def test_who_is_blocked_gets_no_lesser_answer_and_a_model_that_is_set_aside_has_a_stand_in() -> None:
    events = events_of()
    events.path.marks.add(Mark(MarkKind.SOURCE, "10.0.0.1", "abuse", 99.0, "told by an operator"), events.now)
    refused = events.offer(**SMALL, source="10.0.0.1")
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.BLOCKED
    events.path.marks.add(Mark(MarkKind.MODEL, "a", "broken", 99.0, "told by an operator"), events.now)
    decision = events.offer(**SMALL)
    assert isinstance(decision, Admit)
    assert decision.degraded == "light_model"


def test_a_marked_session_that_finds_no_rung_is_told_of_as_well() -> None:
    events = events_of(replace(CONFIG, ladder=LadderConfig()))
    events.path.marks.add(Mark(MarkKind.SESSION, "s", HIGH_RISK, 99.0, "5 timeouts within 60 s"), events.now)
    lines(events)
    refused = events.offer(**SMALL, session="s")
    assert isinstance(refused, Refuse)
    assert refused.reason is Reason.MARKED
    assert lines(events) == ["[DEGRADED] Switching to error_response for session: s"]


def test_a_switch_is_told_once_until_it_has_been_quiet_for_a_while() -> None:
    events = full(orders(Rung.CACHE))
    events.path.remember(b"k", b"body", 0.0)
    told = []
    for now in (0.0, 20.0, 40.0, 71.0):
        events.now = now
        events.offer(**SMALL, cache_key=b"k")
        told.append(sum("cache_fallback" in line for line in lines(events)))
    assert told == [1, 0, 0, 1]


def test_what_is_told_is_remembered_for_a_bounded_number_of_keys() -> None:
    events = events_of()
    for number in range(1100):
        events.path.marks.add(Mark(MarkKind.SESSION, f"s{number}", HIGH_RISK, 9.0, "told"), 0.0)
        asked = Request(number, "a", 0.0, 0, session=f"s{number}")
        events.path.descent._tell(Rung.LIGHT, Record(asked, "interactive", 0.0), Refuse(Reason.MARKED), 0.0)
    assert len(events.path.descent._told) == 1000


# ---- retries ---------------------------------------------------------------------------------


def test_a_failed_attempt_that_finds_no_other_replica_goes_to_the_lighter_model() -> None:
    events = events_of()
    events.offer(**SMALL)
    events.path.settle(events.live[0][1], Outcome.CONNECT_FAILED, 1.0)
    decision = events.path.again(1, Outcome.CONNECT_FAILED, 1.0)
    assert isinstance(decision, Admit)
    assert (decision.permit.replica, decision.degraded) == ("l1", "light_model")


def test_a_lesser_answer_that_fails_goes_down_one_rung_more_and_none_is_tried_twice() -> None:
    events = events_of(replace(CONFIG, replicas=(*CONFIG.replicas, replica_config("l2", "light", sequences=1))))
    events.offer(**SMALL)
    events.path.settle(events.live[0][1], Outcome.CONNECT_FAILED, 1.0)
    lighter = events.path.again(1, Outcome.CONNECT_FAILED, 1.0)
    assert isinstance(lighter, Admit)
    events.path.settle(lighter.permit, Outcome.CONNECT_FAILED, 1.0)
    refusal = Refuse(Reason.NO_REPLICA)
    last = events.path.dispatch.refuse_at_once(events.path.find(1), refusal, 1.0)
    assert isinstance(last, Admit)
    assert (last.permit.replica, last.degraded) == ("s1", "standby")
    events.path.settle(last.permit, Outcome.CONNECT_FAILED, 1.0)
    assert events.path.dispatch.refuse_at_once(events.path.find(1), refusal, 1.0) is refusal
    assert events.path.close(1, 1.0).degraded is None


def test_a_retry_does_not_wait_for_the_lighter_model() -> None:
    events = events_of(orders(Rung.LIGHT))
    events.offer(**SMALL)
    events.offer(**SMALL, upstream="light")
    events.path.settle(events.live[0][1], Outcome.CONNECT_FAILED, 1.0)
    assert isinstance(events.path.again(1, Outcome.CONNECT_FAILED, 1.0), Refuse)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if EFFECTS[outcome].mend])
def test_what_failed_before_its_first_byte_may_be_made_good_by_the_ladder(outcome: Outcome) -> None:
    events = events_of()
    events.offer(**SMALL)
    events.path.settle(events.live[0][1], outcome, 1.0)
    decision = events.path.instead(1, outcome, 1.0)
    assert isinstance(decision, Admit)
    assert decision.degraded == "light_model"
    assert events.path.find(1).refused is Reason.ATTEMPT_FAILED


def test_what_nothing_can_make_good_stays_what_it_was() -> None:
    events = events_of(replace(CONFIG, ladder=LadderConfig()))
    events.offer(**SMALL)
    events.path.settle(events.live[0][1], Outcome.FIRST_BYTE_TIMEOUT, 1.0)
    assert events.path.instead(1, Outcome.FIRST_BYTE_TIMEOUT, 1.0) == Refuse(Reason.ATTEMPT_FAILED)
    assert events.path.close(1, 1.0).refused is None


def test_an_answer_that_has_begun_is_not_given_once_more() -> None:
    for outcome in set(Outcome) - {outcome for outcome in Outcome if EFFECTS[outcome].mend}:
        events = events_of()
        events.offer(**SMALL)
        events.path.settle(events.live[0][1], outcome, 1.0)
        with pytest.raises(ValueError, match="nothing can be given instead"):
            events.path.instead(1, outcome, 1.0)


# ---- before any engine -----------------------------------------------------------------------


def test_a_stored_answer_may_be_served_first_and_is_then_no_lesser_one() -> None:
    ladder = replace(LADDER, answers=AnswersConfig(serve_first=True))
    events = events_of(replace(CONFIG, ladder=ladder))
    assert isinstance(events.offer(**SMALL, cache_key=b"k"), Admit)
    events.path.remember(b"k", b"body", 1.0)
    events.now = 3.0
    assert events.offer(**SMALL, cache_key=b"k") == Answer(b"body", 2.0)
    record = events.records[-1]
    assert (record.is_stored, record.degraded, record.refused, record.charged_tokens) == (True, None, None, 110)


# ---- relief ----------------------------------------------------------------------------------


RELIEVED = PathConfig(
    replicas=(replica_config("a1", sequences=1), replica_config("l1", "light", sequences=1)),
    prefill=PrefillConfig(enabled=False),
    ladder=LadderConfig(light_model="light"),
)


def waiting(config: PathConfig = RELIEVED) -> Events:
    """One runs; 100 and 900 tokens wait for a replica that is known to read 1000 tokens a second."""
    events = events_of(config)
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    assert isinstance(events.offer(**SMALL), Admit)
    assert isinstance(events.offer(**SMALL), Wait)
    assert isinstance(events.offer(prompt_tokens=900, max_tokens=10), Wait)
    return events


def test_the_longest_prompt_leaves_a_long_queue_for_the_lighter_model() -> None:
    events = waiting()
    assert [request.id for request in events.waiting.values()] == [2]
    request, permit = events.live[-1]
    assert (request.id, permit.upstream) == (3, "light")
    record = events.path.find(3)
    assert (record.degraded, record.refused, record.model) == ("light_model", None, "a")
    assert lines(events) == ["[DEGRADED] Switching to light_model for model: a"]


def test_when_the_lighter_model_is_full_it_is_waited_for_under_the_same_ticket() -> None:
    events = events_of(RELIEVED)
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    events.offer(**SMALL, upstream="light")
    events.offer(**SMALL)
    ticket = events.offer(prompt_tokens=900, max_tokens=10)
    assert isinstance(ticket, Wait)
    assert events.path.upstreams["light"].queue.requests == 1
    assert events.path.upstreams["a"].queue.requests == 0
    events.settle(0, Outcome.OK)
    assert not events.waiting
    assert events.live[-1][1].upstream == "light"
    assert events.path.find(3).rungs == ("light_model",)


def test_nobody_is_given_to_the_lighter_model_twice() -> None:
    events = events_of(RELIEVED)
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    events.offer(**SMALL)
    long = Request(9, "a", 0.0, 0, prompt_tokens=900, max_tokens=10)
    assert isinstance(events.path.offer(long, 0.0), Wait)
    events.path.find(9).rungs = ("light_model",)
    assert events.path.advance(0.0) == []
    assert events.path.upstreams["a"].queue.requests == 1


def test_a_lighter_model_whose_own_wait_is_long_or_unknown_takes_nobody() -> None:
    events = events_of(RELIEVED)
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    for _ in range(2):
        events.offer(**SMALL, upstream="light")
    events.offer(**SMALL)
    events.offer(prompt_tokens=900, max_tokens=10)
    assert events.path.upstreams["a"].queue.requests == 1


def test_who_cannot_be_helped_is_passed_over() -> None:
    config = replace(RELIEVED, replicas=(RELIEVED.replicas[0], replica_config("l1", "light", context_tokens=500)))
    events = events_of(config)
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    for prompt_tokens in (100, 900, 400, 100):
        events.offer(prompt_tokens=prompt_tokens, max_tokens=10)
    assert {permit.request_id for _, permit in events.live if permit.upstream == "light"} == {3, 4}
    assert [request.id for request in events.waiting.values()] == [2]


def test_a_count_that_shows_a_longer_prompt_is_taken_note_of() -> None:
    events = events_of(RELIEVED)
    events.path.upstreams["a"].replicas[0].token_s = 0.001
    for _ in range(3):
        events.offer(**SMALL)
    events.amend(0, 1200)
    assert events.path.find(2).degraded == "light_model"


def test_a_reload_brings_relief_to_those_who_wait_already() -> None:
    off = replace(RELIEVED, ladder=LadderConfig())
    events = waiting(off)
    assert len(events.waiting) == 2
    events.path.apply(RELIEVED, 0.0)
    events.advance()
    assert [request.id for request in events.waiting.values()] == [2]
    later = replace(RELIEVED, ladder=LadderConfig(light_model="light", relieve_after_s=9.0))
    events.path.apply(later, 0.0)
    relief = events.path.upstreams["a"].relief
    assert relief is not None
    assert relief.config is later.ladder
    events.path.apply(off, 0.0)
    assert events.path.upstreams["a"].relief is None


def test_the_wait_of_a_queue_is_what_stands_in_it_over_what_leaves_it() -> None:
    upstream = waiting(replace(RELIEVED, ladder=LadderConfig())).path.upstreams["a"]
    assert upstream.wait_s(0.0) == 1.0
    upstream.replicas[0].token_s = 0.0
    assert upstream.wait_s(0.0) is None
    line = upstream.queue.lines["interactive"]
    for _ in range(30):
        line.meter.served(50, 1.0)
    measured = line.tokens_per_s(1.0)
    assert measured is not None
    assert upstream.wait_s(1.0) == upstream.queue.tokens / measured
