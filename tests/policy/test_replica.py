"""What placement knows of one replica: its gates, its readings, and what it may learn."""

from __future__ import annotations

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.reading import Reading
from tidegate.policy.replica import SAMPLES_PER_S, Replica
from tidegate.policy.snapshot import view_of

ONE = PathConfig(replicas=(replica_config("a1"),))


def start() -> tuple[Events, Replica]:
    events = Events(Path(ONE, 0.0))
    return events, events.path.upstreams["a"].replicas[0]


def read(events: Events, **fields: object) -> None:
    events.pass_time(1.0)
    events.observe("a1", **fields)


def test_load_that_is_not_ours_counts_once_two_readings_in_a_row_show_it() -> None:
    events, replica = start()
    events.offer(prompt_tokens=10, max_tokens=10)
    read(events, running=4, kv_used_tokens=256 + 5 * 256)
    assert (replica.foreign_sequences, replica.slots.foreign) == (0, 0)
    read(events, running=6, kv_used_tokens=256 + 3 * 256)
    assert (replica.foreign_sequences, replica.slots.foreign) == (3, 3)


def test_foreign_load_takes_places_and_slots() -> None:
    events, _ = start()
    for _ in range(2):
        read(events, running=7, kv_used_tokens=30 * 256)
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Admit)
    decision = events.offer(prompt_tokens=10, max_tokens=10)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.SEQUENCES
    events, _ = start()
    for _ in range(2):
        read(events, kv_used_tokens=31 * 256)
    decision = events.offer(prompt_tokens=300, max_tokens=10)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.SLOTS


@pytest.mark.parametrize("later", [{"running": 0, "kv_used_tokens": 0}, {"running": None, "kv_used_tokens": None}])
def test_foreign_load_clears_with_one_reading_without_it_and_lets_the_waiting_go(later: dict[str, object]) -> None:
    events, replica = start()
    for _ in range(2):
        read(events, running=8, kv_used_tokens=32 * 256)
    assert isinstance(events.offer(prompt_tokens=10, max_tokens=10), Wait)
    read(events, **later)
    assert (replica.foreign_sequences, replica.slots.foreign) == (0, 0)
    assert not events.waiting


def test_a_started_slot_that_is_used_in_part_is_no_foreign_load() -> None:
    events, replica = start()
    events.offer(prompt_tokens=10, max_tokens=10)
    for _ in range(2):
        read(events, running=1, kv_used_tokens=100)
    assert replica.slots.foreign == 0
    for _ in range(2):
        read(events, running=1, kv_used_tokens=257)
    assert replica.slots.foreign == 1


def test_an_older_reading_than_the_last_and_one_from_the_future_are_of_no_use() -> None:
    events, replica = start()
    read(events, ready=False, error="connection refused")
    events.path.observe("a1", Reading(at=0.5), events.now)
    assert not replica.ready
    events.path.observe("a1", Reading(at=99.0), events.now)
    assert not replica.ready
    assert view_of(replica)["error"] == "connection refused"
    events.path.observe("a1", Reading(at=1.0), events.now)
    assert replica.ready


def test_only_the_replica_of_that_name_hears_its_reading() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1"), replica_config("a2"))), 0.0))
    events.observe("a2", ready=False)
    events.observe("nobody", ready=False)
    assert [each.ready for each in events.path.upstreams["a"].replicas] == [True, False]


def test_a_few_hundred_samples_a_second_are_learned_and_then_no_more() -> None:
    _, replica = start()
    assert sum(replica.may_learn(0.0) for _ in range(1000)) == SAMPLES_PER_S
    assert sum(replica.may_learn(0.5) for _ in range(1000)) == SAMPLES_PER_S / 2
    assert sum(replica.may_learn(100.0) for _ in range(1000)) == SAMPLES_PER_S


def test_what_comes_beyond_them_teaches_nothing_but_still_ends_in_the_books() -> None:
    events, replica = start()
    for _ in range(400):
        events.offer(prompt_tokens=10, max_tokens=10)
        events.first_token(0)
        events.settle(0, Outcome.OK)
    assert replica.first_token.samples + replica.whole.samples == SAMPLES_PER_S
    events.finish()


def test_under_load_nothing_is_learned_of_what_it_can_do() -> None:
    events = Events(Path(PathConfig(replicas=(replica_config("a1", sequences=8),)), 0.0))
    replica = events.path.upstreams["a"].replicas[0]
    for _ in range(8):
        events.offer(prompt_tokens=10, max_tokens=10)
    for _ in range(8):
        events.first_token(0)
    assert replica.first_token.samples == 0
    for _ in range(8):
        events.settle(0, Outcome.OK)
    assert replica.whole.samples == 4


def test_prefill_that_waits_is_what_has_no_first_token_yet() -> None:
    events, replica = start()
    for _ in range(2):
        events.offer(prompt_tokens=100, max_tokens=10)
    events.offer(prompt_tokens=100, max_tokens=10, streaming=False)
    assert [permit.pending_tokens for _, permit in events.live] == [100, 200, 0]
    assert replica.pending_tokens == 200
    events.first_token(0)
    assert replica.pending_tokens == 100
    events.settle(1, Outcome.ENGINE_ERROR, retry=False)
    assert replica.pending_tokens == 0
    events.settle(0, Outcome.OK)
    events.settle(0, Outcome.OK)
    assert (replica.pending_tokens, replica.in_flight, replica.slots.held) == (0, 0, 0)


def test_a_first_token_comes_once() -> None:
    events, _ = start()
    events.offer(max_tokens=10)
    permit = events.live[0][1]
    events.first_token(0)
    with pytest.raises(ValueError, match="first token for permit 1, which is used"):
        events.path.attempts.first_token(permit, events.path.find(1), 1.0)


def test_its_rates_are_known_after_thirty_samples_and_show_in_its_view() -> None:
    events, replica = start()
    for number in range(40):
        tokens = 100 * (1 + number % 10)
        events.offer(prompt_tokens=tokens, max_tokens=10)
        events.pass_time(0.01 + tokens / 10_000)
        events.first_token(0)
        events.settle(0, Outcome.OK)
        if number == 28:
            assert replica.token_s == 0.0
    view = view_of(replica)
    assert view["token_s"] == replica.token_s == pytest.approx(1e-4)
    assert view["prefill_bound_tokens"] == pytest.approx(max(2048.0, 0.15 / 1e-4))
    assert (view["upstream"], view["ready"], view["draining"], view["error"]) == ("a", True, False, "")
    assert view["breaker"] == "closed"


def test_a_request_that_grew_past_its_reservation_is_counted() -> None:
    events, replica = start()
    events.offer(prompt_tokens=250, max_tokens=10)
    _, permit = events.live.pop()
    events.path.settle(permit, Outcome.OK, 1.0, prompt_tokens=600)
    assert replica.slots.overdrafts == 1


def test_progress_fills_the_record() -> None:
    events, _ = start()
    events.offer(prompt_tokens=10, max_tokens=10)
    request, permit = events.live[0]
    events.path.progress(permit, Progress.SENT, 1.0)
    events.path.progress(permit, Progress.FIRST_TOKEN, 2.0)
    for tokens in (4, 9):
        events.path.progress(permit, Progress.TOKENS, 3.0, tokens)
    record = events.path.find(request.id)
    assert (record.sent_at, record.first_token_at, record.output_tokens) == (1.0, 2.0, 9)
    events.path.settle(permit, Outcome.CUT, 5.0)
    record = events.path.close(request.id, 6.0)
    assert (record.output_tokens, record.closed_at, record.outcome) == (9, 6.0, Outcome.CUT)
