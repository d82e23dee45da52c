"""When a model counts as slow though nobody waits for it, and when as well again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policy.machine import Events, replica_config
from tidegate.policy.decisions import Admit
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Progress
from tidegate.policy.slowness import FEW, MOST_PROBE_S, PROBE_S

CONFIG = PathConfig(
    replicas=(replica_config("a1", sequences=100), replica_config("l1", "light", sequences=100)),
    prefill=PrefillConfig(enabled=False),
    ladder=LadderConfig(light_model="light"),
)
USUAL_S = 0.1


def events_of(config: PathConfig = CONFIG) -> Events:
    return Events(Path(config, 0.0))


def ask(events: Events, first_byte_s: float = USUAL_S, **fields: object) -> str:
    """One request whose first byte takes so long on ``a1``; the upstream that served it."""
    decision = events.offer(**({"prompt_tokens": 100, "max_tokens": 10} | fields))
    assert isinstance(decision, Admit)
    permit = decision.permit
    if permit.upstream == "a":
        events.pass_time(first_byte_s)
        events.path.progress(permit, Progress.FIRST_TOKEN, events.now)
    events.settle(len(events.live) - 1, Outcome.OK)
    return permit.upstream


def known(config: PathConfig = CONFIG) -> Events:
    """The usual pace of ``a`` is known."""
    events = events_of(config)
    assert {ask(events) for _ in range(FEW)} == {"a"}
    return events


def slow(config: PathConfig = CONFIG) -> Events:
    events = known(config)
    assert [ask(events, 10 * USUAL_S) for _ in range(4)] == ["a"] * 4
    return events


def test_slow_ones_in_a_row_send_everybody_to_the_lighter_model() -> None:
    events = slow()
    assert [ask(events) for _ in range(10)] == ["light"] * 10
    record = events.records[-1]
    assert (record.degraded, record.refused, record.model) == ("light_model", None, "a")


def test_one_good_answer_in_between_begins_the_count_anew() -> None:
    events = known()
    served = [ask(events, 10 * USUAL_S if number % 4 else USUAL_S) for number in range(1, 15)]
    assert set(served) == {"a"}


def test_a_long_prompt_is_no_slow_model() -> None:
    events = known()
    assert {ask(events, 6 * USUAL_S, prompt_tokens=3500) for _ in range(10)} == {"a"}


def test_before_the_usual_pace_is_known_nothing_is_slow() -> None:
    events = events_of()
    assert {ask(events, 10 * USUAL_S) for _ in range(10)} == {"a"}


def test_first_bytes_that_are_overdue_count_though_they_have_not_come() -> None:
    events = known()
    for _ in range(4):
        assert isinstance(events.offer(prompt_tokens=100, max_tokens=10), Admit)
    assert ask(events) == "a"
    events.pass_time(30 * USUAL_S)
    assert ask(events) == "light"


def test_what_has_begun_to_answer_is_not_overdue() -> None:
    events = known()
    for _ in range(4):
        decision = events.offer(prompt_tokens=100, max_tokens=10)
        assert isinstance(decision, Admit)
        events.path.progress(decision.permit, Progress.FIRST_TOKEN, events.now)
    events.pass_time(30 * USUAL_S)
    assert ask(events) == "a"


def test_first_byte_timeouts_count_even_before_the_usual_pace_is_known() -> None:
    events = events_of()
    for _ in range(4):
        decision = events.offer(prompt_tokens=100, max_tokens=10)
        assert isinstance(decision, Admit)
        events.pass_time(1.0)
        events.path.settle(decision.permit, Outcome.FIRST_BYTE_TIMEOUT, events.now)
        events.live.pop()
        events.path.close(decision.permit.request_id, events.now)
    assert ask(events) == "light"


def test_one_probe_at_a_time_finds_the_model_well_again() -> None:
    events = slow()
    events.pass_time(PROBE_S)
    assert [ask(events) for _ in range(8)] == ["a"] * 8
    assert events.path.upstreams["a"].slowness is not None
    assert not events.path.upstreams["a"].slowness.is_slow


def test_while_a_probe_is_out_everybody_else_goes_to_the_lighter_model() -> None:
    events = slow()
    events.pass_time(PROBE_S)
    probe = events.offer(prompt_tokens=100, max_tokens=10)
    assert isinstance(probe, Admit)
    assert probe.permit.upstream == "a"
    assert [ask(events) for _ in range(3)] == ["light"] * 3
    # Its client leaves: the next one takes its place.
    events.path.settle(probe.permit, Outcome.CLIENT_LEFT, events.now)
    events.path.close(probe.permit.request_id, events.now)
    assert ask(events) == "a"


def test_a_slow_probe_makes_the_next_one_wait_longer() -> None:
    events = slow()
    waits = []
    for _ in range(5):
        begun = events.now
        while ask(events, 10 * USUAL_S) == "light":
            events.pass_time(0.5)
        waits.append(round(events.now - begun - 10 * USUAL_S))
    assert waits == [PROBE_S, 2 * PROBE_S, 4 * PROBE_S, MOST_PROBE_S, MOST_PROBE_S]


def test_when_the_lighter_model_is_no_help_the_slow_one_goes_on() -> None:
    events = slow(replace(CONFIG, replicas=(CONFIG.replicas[0], replica_config("l1", "light", context_tokens=50))))
    assert ask(events) == "a"


def test_whole_answers_neither_tell_nor_are_diverted() -> None:
    events = slow()
    assert ask(events, streaming=False) == "a"
    events = known()
    assert {ask(events, 10 * USUAL_S, streaming=False) for _ in range(9)} == {"a"}


@pytest.mark.parametrize(
    "ladder", [LadderConfig(), LadderConfig(light_model="light", slow_ratio=None), LadderConfig(light_model="a")]
)
def test_it_is_off_without_a_lighter_model_or_a_ratio(ladder: LadderConfig) -> None:
    events = slow(replace(CONFIG, ladder=ladder))
    assert events.path.upstreams["a"].slowness is None
    assert ask(events) == "a"


def test_a_reload_may_switch_it_off_and_change_its_ratio() -> None:
    events = slow()
    events.path.apply(replace(CONFIG, ladder=LadderConfig(light_model="light", slow_ratio=50.0)), events.now)
    slowness = events.path.upstreams["a"].slowness
    assert slowness is not None
    assert slowness.config.slow_ratio == 50.0
    events.path.apply(replace(CONFIG, ladder=LadderConfig()), events.now)
    assert ask(events) == "a"


def test_a_ratio_that_is_taken_away_in_the_middle_judges_nothing() -> None:
    slowness = known().path.upstreams["a"].slowness
    assert slowness is not None
    slowness.config = replace(slowness.config, slow_ratio=None)
    assert not slowness.diverts(1, [], 99.0)
