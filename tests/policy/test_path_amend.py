"""The exact prompt size of a request that waits."""

from __future__ import annotations

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit, Reason, Refuse, Wait
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.token_source import TokenSource


def waiting(estimate: int) -> Events:
    """One runs and holds half of the slots; the other was estimated so large that it waits."""
    events = Events(Path(PathConfig(replicas=(replica_config("a1"),)), 0.0))
    assert isinstance(events.offer(prompt_tokens=4000, max_tokens=96), Admit)
    assert isinstance(events.offer(prompt_tokens=estimate, max_tokens=96, tenant="t"), Wait)
    return events


def amend(events: Events, request_id: int, prompt_tokens: int) -> Refuse | None:
    ticket = next(ticket for ticket, request in events.waiting.items() if request.id == request_id)
    return events.path.amend(ticket, prompt_tokens, TokenSource.TOKENIZER, events.now)


def test_a_prompt_that_is_smaller_than_it_seemed_is_placed_at_once() -> None:
    events = waiting(5000)
    assert amend(events, 2, 4000) is None
    events.first_token(0)
    assert len(events.live) == 2
    assert events.live[1][1].slots == 16


def test_it_goes_without_any_other_event() -> None:
    events = waiting(5000)
    events.first_token(0)
    amend(events, 2, 4000)
    events.advance()
    assert len(events.live) == 2


def test_the_queue_counts_the_exact_tokens_and_none_remain_when_it_is_gone() -> None:
    events = waiting(5000)
    line = events.path.upstreams["a"].queue.lines["long"]
    assert line.tokens == 5000
    amend(events, 2, 4050)
    assert line.tokens == 4050
    events.cancel(0)
    assert line.tokens == 0


def test_only_the_one_that_was_counted_changes() -> None:
    events = waiting(5000)
    events.offer(prompt_tokens=3000, max_tokens=96)
    amend(events, 3, 3100)
    line = events.path.upstreams["a"].queue.lines["long"]
    assert line.tokens == 8100
    assert [request.prompt_tokens for request in events.waiting.values()] == [5000, 3100]


def test_an_exact_prompt_that_can_never_fit_gives_its_reason() -> None:
    events = waiting(5000)
    events.amend(0, 4097)
    record = events.records[-1]
    assert (record.refused, record.prompt_tokens, record.attempts) == (Reason.NEVER_FITS, 4097, 0)
    assert (record.request.estimated_tokens, record.request.counted_tokens) == (5000, 4097)
    assert record.request.counted_by is TokenSource.TOKENIZER
    events.finish()


def test_the_tenant_pays_for_what_was_used_not_for_what_was_estimated() -> None:
    events = waiting(5000)
    amend(events, 2, 4000)
    events.settle(0, Outcome.OK)
    events.settle(0, Outcome.OK)
    account = events.path.quota.accounts["t"]
    assert (account.charged, account.settled, account.refunded, account.open) == (5096, 4010, 1086, 0)
