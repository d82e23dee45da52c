"""How long a request may wait and where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.classes import ClassConfig
from tidegate.policy.patience import client_limit, patience
from tidegate.policy.record import Record
from tidegate.policy.request import NEVER, Request


def held(
    request: Request,
    *,
    first: float | None = None,
    margin: float = 0.8,
    service_s: tuple[float, float] = (0.0, 0.0),
    slo_s: float | None = None,
) -> tuple[float, float, bool]:
    record = Record(request, "interactive", request.arrived_at if first is None else first)
    got = patience(record, ClassConfig(max_wait_s=10.0, ttft_slo_s=slo_s), margin, service_s)
    assert record.objective_at == (NEVER if slo_s is None or not request.streaming else request.arrived_at + slo_s)
    return got.due_at, got.expires_at, got.is_clients


def asked(first_byte_s: float = NEVER, deadline_s: float = NEVER, *, streaming: bool = True) -> Request:
    return Request(
        1, "a", 100.0, 0, streaming=streaming, first_byte_by=100.0 + first_byte_s, deadline_at=100.0 + deadline_s
    )


def test_without_a_limit_of_its_client_the_class_decides() -> None:
    assert held(asked()) == (110.0, 110.0, False)


def test_a_stream_is_held_to_its_first_byte_less_the_margin_and_less_the_prefill() -> None:
    assert held(asked(5.0)) == (105.0, 104.0, True)
    assert held(asked(5.0), service_s=(1.5, 60.0)) == (105.0, 102.5, True)


def test_an_answer_in_one_piece_has_its_first_byte_when_it_is_complete() -> None:
    assert held(asked(5.0, streaming=False), service_s=(1.5, 2.5)) == (105.0, 101.5, True)


def test_a_deadline_leaves_time_for_the_whole_answer() -> None:
    due_at, expires_at, is_clients = held(asked(deadline_s=8.0), service_s=(0.5, 4.0))
    assert (due_at, is_clients) == (108.0, True)
    assert expires_at == pytest.approx(102.4)


def test_the_earlier_of_the_two_limits_binds() -> None:
    assert held(asked(5.0, 8.0), service_s=(0.0, 4.0))[1] == pytest.approx(102.4)
    assert held(asked(2.0, 8.0), service_s=(0.0, 4.0))[1] == pytest.approx(101.6)
    assert client_limit(asked(5.0, 8.0)) == 105.0


def test_a_request_may_bring_a_longest_stay_of_its_own_which_no_objective_shortens() -> None:
    request = asked()
    request.max_wait_s = 300.0
    assert held(request) == (400.0, 400.0, False)
    record = Record(request, "interactive", request.arrived_at)
    got = patience(record, ClassConfig(max_wait_s=10.0, ttft_slo_s=2.0), 0.8, (0.0, 0.0))
    assert (got.expires_at, record.objective_at) == (400.0, NEVER)


def test_a_patient_client_waits_no_longer_than_its_class() -> None:
    assert held(asked(60.0)) == (110.0, 110.0, False)


def test_an_objective_of_the_class_shortens_the_wait_of_streams_by_the_margin_and_the_prefill() -> None:
    assert held(asked(), slo_s=2.0) == (101.6, 101.6, False)
    assert held(asked(60.0), slo_s=2.0, service_s=(0.6, 30.0)) == (101.0, 101.0, False)
    assert held(asked(1.0), slo_s=2.0) == (101.0, 100.8, True)
    assert held(asked(), slo_s=60.0) == (110.0, 110.0, False)
    assert held(asked(streaming=False), slo_s=2.0) == (110.0, 110.0, False)


def test_what_cannot_meet_its_objective_even_at_once_does_not_wait_at_all() -> None:
    assert held(asked(), slo_s=2.0, service_s=(3.0, 30.0)) == (100.0, 100.0, False)


def test_a_repeat_stands_where_it_stood_first_but_waits_from_now() -> None:
    due_at, expires_at, _ = held(asked(5.0), first=93.0)
    assert (due_at, expires_at) == (98.0, 104.0)


@given(st.floats(0.0, 100.0), st.floats(0.0, 100.0), st.floats(0.1, 1.0), st.floats(0.0, 50.0), st.booleans())
def test_no_ticket_outlives_what_its_client_or_its_class_will_bear(
    first_byte_s: float, deadline_s: float, margin: float, service_s: float, streaming: bool
) -> None:
    request = asked(first_byte_s, deadline_s, streaming=streaming)
    due_at, expires_at, _ = held(request, margin=margin, service_s=(service_s / 2, service_s))
    assert expires_at <= min(client_limit(request), 110.0) + 1e-9
    assert due_at == min(client_limit(request), 110.0)
