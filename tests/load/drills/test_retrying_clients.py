"""Clients that try again, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from tests.load.drills.scripted_own import sample
from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.retrying_clients import (
    MOST_TRIES,
    ClientCall,
    RetryingClients,
    call_of,
    charged_calls,
    reused_tries,
)
from tidegate.load.sample import Sample
from tidegate.testing.virtual_loop import run_virtually

OK, BROKEN, FAULT = ClientOutcome.OK, ClientOutcome.BROKEN, ClientOutcome.CLIENT_FAULT


def ask(index: int, due_s: float = 0.0) -> Ask:
    return Ask(index=index, due_s=due_s, label="x", body=b",{}")


def played(outcomes: list[ClientOutcome], asks: list[Ask]) -> tuple[RetryingClients, list[tuple[float, Ask]]]:
    """``outcomes``: of the tries in order; OK when they run out."""
    sent: list[tuple[float, Ask]] = []

    async def send(one: Ask) -> Sample:
        sent.append((asyncio.get_running_loop().time() - 1000.0, one))
        return sample(one, outcomes.pop(0) if outcomes else OK)

    clients = RetryingClients("c", send)
    run_virtually(clients.run(asks))
    return clients, sent


def test_a_broken_call_is_tried_again_under_its_key_after_a_pause_that_doubles() -> None:
    clients, sent = played([BROKEN, BROKEN, OK], [ask(7)])
    assert [at for at, _ in sent] == pytest.approx([0.0, 0.5, 1.5])
    headers = [dict(one.headers) for _, one in sent]
    assert {each["idempotency-key"] for each in headers} == {"c-7"}
    assert [each["x-request-id"] for each in headers] == ["c-7.0", "c-7.1", "c-7.2"]
    assert clients.calls[0].is_answered


def test_a_call_is_given_up_after_so_many_tries() -> None:
    clients, sent = played([BROKEN] * 20, [ask(1)])
    assert len(sent) == MOST_TRIES
    assert not clients.calls[0].is_answered


def test_what_is_the_clients_own_mistake_is_not_tried_again() -> None:
    clients, sent = played([FAULT], [ask(1)])
    assert len(sent) == 1
    assert not clients.calls[0].is_answered


def test_calls_begin_when_they_are_due_and_do_not_wait_for_each_other() -> None:
    _, sent = played([BROKEN], [ask(0), ask(1, due_s=0.25)])
    assert [(round(at, 3), one.index) for at, one in sent] == [(0.0, 0), (0.25, 1), (0.5, 0)]


def test_charges_and_repeats_are_read_from_the_gateways_records() -> None:
    calls = [ClientCall("c-1"), ClientCall("c-2")]
    rows = [
        {"request_id": "c-1.0", "outcome": "ok", "reuse": ""},
        {"request_id": "c-1.1", "outcome": "ok", "reuse": "replayed"},
        {"request_id": "c-2.0", "outcome": "engine_error"},
        {"request_id": "c-2.1", "outcome": "ok"},
        {"request_id": "c-2.2", "outcome": "ok"},
        {"request_id": "other-1", "outcome": "ok"},
    ]
    assert charged_calls(rows, calls) == {"c-1": 1, "c-2": 2}
    assert reused_tries(rows, calls) == 1
    assert call_of("c-2.1") == "c-2"
