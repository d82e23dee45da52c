"""When a drill is ended."""

from __future__ import annotations

from tests.load.made_samples import sample
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.abort_rule import AbortRule
from tidegate.load.sample import Sample

RULE = AbortRule(error_share=0.5, within_s=6.0, least=4)


def ended(at: float, *outcomes: ClientOutcome) -> list[Sample]:
    return [sample(at - 0.1, 0.1, outcome) for outcome in outcomes]


OK, BROKEN = ClientOutcome.OK, ClientOutcome.BROKEN


def test_more_failures_than_a_drill_may_cost_end_it() -> None:
    assert "75%" in RULE.why(ended(10.0, BROKEN, BROKEN, BROKEN, OK), 11.0)


def test_as_many_as_it_may_cost_do_not() -> None:
    assert not RULE.why(ended(10.0, BROKEN, BROKEN, OK, OK), 11.0)


def test_a_few_ends_say_nothing() -> None:
    assert not RULE.why(ended(10.0, BROKEN, BROKEN, BROKEN), 11.0)


def test_what_ended_long_ago_is_forgotten() -> None:
    assert not RULE.why(ended(10.0, BROKEN, BROKEN, BROKEN, BROKEN), 17.0)
