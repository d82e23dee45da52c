"""Every reason and every ending has its sentence, and the phases add up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lens.rows import row, unsent
from tidegate.lens.explain import ENDED, REFUSED, WAITED_FOR, explain, phases_s, seconds
from tidegate.lens.row import Row
from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import Outcome
from tidegate.policy.token_source import TokenSource

ROUTE = "/v1/chat/completions"


def text(each: Row) -> str:
    return " ".join(explain(each))


def test_every_reason_is_explained_as_a_wait_or_a_refusal() -> None:
    assert set(WAITED_FOR) | set(REFUSED) == set(Reason)
    assert set(ENDED) == set(Outcome)


@pytest.mark.parametrize("reason", list(REFUSED))
def test_a_refusal_names_its_status_code_cause_and_when_to_come_back(reason: Reason) -> None:
    told = text(unsent(status=429, refused=reason, retry_after_s=2.5))
    assert f"was refused with 429 ({reason.value}) after 3 s" in told
    assert REFUSED[reason] in told
    assert "come back after 2.5 s" in told


@pytest.mark.parametrize("reason", list(WAITED_FOR))
def test_a_wait_names_how_long_and_what_for(reason: Reason) -> None:
    told = text(row(queued_at=100.0, admitted_at=102.0, waited_for=reason, predicted_wait_s=1.5))
    assert "It waited 2 s in the queue (predicted: 1.5 s), because " + WAITED_FOR[reason] in told


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_ending_of_an_attempt_is_told(outcome: Outcome) -> None:
    assert ENDED[outcome] in text(row(outcome=outcome))


@pytest.mark.parametrize(("reuse", "when"), [("joined", "ran, and got"), ("replayed", "had ended, and got")])
def test_a_repeat_says_whose_answer_it_got(reuse: str, when: str) -> None:
    told = explain(unsent(status=200, reuse=reuse, original_id="req-0"))
    assert len(told) == 2
    assert when in told[1]
    assert told[1].endswith("the answer of that one, req-0: nothing was computed or charged for it.")


def test_an_answer_that_did_not_wait_is_told_in_order() -> None:
    assert explain(row()) == [
        f"Request req-1 ({ROUTE}, model chat, class interactive, tenant default) was answered 200 after 3 s.",
        (
            "It brought 100 prompt tokens (estimated 90; 100 as the engine reported) and at most 64 output tokens; "
            "it reserved 2 slots."
        ),
        "It did not wait: nobody stood before it and a replica had room.",
        "It ran on replica chat-0.",
        "The answer was complete.",
        "Time by phase: connect 10 ms, first token 490 ms, answer 2.5 s; 30 output tokens.",
    ]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"cached_tokens": 80}, "it reserved 2 slots; 80 of the prompt's tokens were expected in the replica's cache."),
        ({"is_prompt_told": False}, "100 prompt tokens (estimated 90; nobody counted)"),
        ({"counted_by": TokenSource.CLIENT}, "100 prompt tokens (sent as token ids)"),
        (
            {"counted_tokens": 99, "counted_by": TokenSource.TOKENIZER},
            "100 prompt tokens (estimated 90; 99 by the upstream's tokenizer file, 100 as the engine reported)",
        ),
        (
            {"counted_tokens": 100, "counted_by": TokenSource.ENGINE, "is_prompt_told": False},
            "100 prompt tokens (estimated 90; 100 by the engine's tokenizer)",
        ),
    ],
)
def test_every_figure_of_a_prompts_length_is_told_with_its_source(fields: dict[str, Any], told: str) -> None:
    assert told in text(row(**fields))


def test_a_move_to_another_replica_is_told() -> None:
    assert "It moved: attempt 2 ran on replica chat-1" in text(row(attempts=2, replica="chat-1"))


@pytest.mark.parametrize(("times", "told"), [(1, "went on: on chat-1."), (2, "went on, 2 times: on chat-1.")])
def test_a_stream_that_went_on_elsewhere_is_told(times: int, told: str) -> None:
    found = text(row(attempts=2, replica="chat-1", continuations=times, continued_from="chat-0"))
    assert f"It began on replica chat-0, which failed, and {told}" in found


def test_repeats_degraded_late_and_in_stream_errors_are_told() -> None:
    told = text(
        row(repeat=True, first_arrived_at=92.0, degraded="cache", deadline_s=2.0, refused_in_stream=True, sequences=3)
    )
    assert "Its client had come 8 s before under the same key" in told
    assert "by this rung of the ladder: cache" in told
    assert "late: its deadline was 2 s after arrival" in told
    assert "went out as an event" in told
    assert "for each of 3 sequences" in told


def test_a_refusal_that_the_ladder_made_good_is_told_as_what_would_have_been() -> None:
    told = text(unsent(refused=Reason.NO_REPLICA, degraded="cache", retry_after_s=2.0))
    assert "It would have been refused because no healthy replica served the model." in told
    assert "come back" not in told


def test_who_answered_instead_and_what_was_answered_before_is_told() -> None:
    told = text(row(refused=Reason.QUEUE_FULL, degraded="light_model", served_by="small"))
    assert "by this rung of the ladder: light_model, from small." in told
    assert "It was answered from the cache, before any engine was asked." in text(unsent(is_stored=True))


def test_what_is_wrong_with_prompt_and_answer_is_told() -> None:
    told = text(row(output_problem="output_empty", input_problem="repetitive_input", degraded="truncated_input"))
    assert "Its answer was not as it should be: output_empty." in told
    assert "passed on though something is wrong with it: repetitive_input." in told
    assert "longer than the model's context, so it was shortened." in told
    assert "rung" not in told
    assert "so it went to a model with a longer one." in text(row(degraded="route_long"))


def test_a_client_that_left_the_queue_is_no_refusal() -> None:
    told = text(unsent(status=0, queued_at=100.0, waited_for=Reason.SLOTS))
    assert "lost its client after 3 s" in told
    assert "refused" not in told
    assert "It waited 3 s in the queue" in told


def test_a_call_refused_at_the_edge_is_one_sentence() -> None:
    edge = Row(1, "req-9", "/v1/completions", 413, "body_too_large", 10.0, 10.5, 9)
    told = "Request req-9 (/v1/completions) was refused at the edge: 413 (body_too_large) after 500 ms."
    assert explain(edge) == [told]


def test_phases_follow_each_other_without_gap_from_queue_to_close() -> None:
    waited = row(queued_at=100.0, admitted_at=101.0, sent_at=101.25, first_token_at=102.0)
    assert phases_s(waited) == {"queue": 1.0, "connect": 0.25, "first_token": 0.75, "answer": 1.0}
    assert sum(phases_s(waited).values()) == waited.closed_at - waited.arrived_at


@pytest.mark.parametrize(
    ("value_s", "shown"), [(0.0, "0 ms"), (0.0123, "12.3 ms"), (0.9996, "1 s"), (61.25, "61.2 s"), (-0.5, "-500 ms")]
)
def test_durations_read_well(value_s: float, shown: str) -> None:
    assert seconds(value_s) == shown


def test_a_burst_is_told_with_the_request_that_came_in_it() -> None:
    assert "It came in a burst: more requests than usual arrived for its model." in explain(row(in_burst=True))
    assert not [line for line in explain(row()) if "burst" in line]
