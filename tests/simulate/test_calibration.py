"""The fit recovers an engine whose costs are known, and says so where it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.known_engine import TRUTH, records
from tidegate.errors import ConfigError
from tidegate.simulate.calibrated_engine import CalibratedEngine, costs_ms
from tidegate.simulate.calibration import Calibration, Sizes, calibrate, most_at_once
from tidegate.simulate.fit_parts import by_blocks, by_phases
from tidegate.simulate.least_squares import loss
from tidegate.simulate.likeness import likenesses, residuals, unanswered
from tidegate.simulate.load_replay import replay
from tidegate.simulate.load_row import LoadRow

KNOWN = Sizes(max_sequences=4, chunk_tokens=128, context_tokens=2048)


def fit(rows: list[LoadRow], sizes: Sizes = KNOWN) -> Calibration:
    return calibrate(rows, by_phases(rows, ["single", "at-1", "at-2"])[0], sizes)


@pytest.fixture(scope="module")
def rows() -> list[LoadRow]:
    return records()


@pytest.fixture(scope="module")
def found(rows: list[LoadRow]) -> Calibration:
    return fit(rows)


def test_costs_of_a_known_engine_are_found(found: Calibration) -> None:
    true = costs_ms(TRUTH.config.step)
    assert costs_ms(found.engine.config.step) == pytest.approx(true, rel=0.02)
    assert found.engine.overhead_s == pytest.approx(TRUTH.overhead_s, rel=0.02)


def test_a_phase_that_was_not_fitted_is_played_as_it_was(rows: list[LoadRow], found: Calibration) -> None:
    told = [each for each in likenesses(rows, replay(rows, found.engine)) if each.phase == "at-3"]
    assert {each.metric for each in told} == {"ttft", "tpot", "e2e"}
    assert max(abs(each.error) for each in told) < 0.05


def test_noise_of_a_tenth_leaves_what_a_step_costs_within_a_tenth() -> None:
    config = fit(records(noise=0.1)).engine.config
    full = [
        costs["fixed"] + 124 * costs["prefill"] + 4 * costs["sequence"]
        for costs in (costs_ms(TRUTH.config.step), costs_ms(config.step))
    ]
    assert full[1] == pytest.approx(full[0], rel=0.1)


def test_sequences_and_chunk_are_found_where_nobody_says_them(rows: list[LoadRow]) -> None:
    config = fit(rows, Sizes()).engine.config
    assert (config.max_sequences, config.chunk_tokens) == (4, 128)


def test_equal_records_give_equal_engines(rows: list[LoadRow], found: Calibration) -> None:
    assert fit(list(rows)).engine == found.engine


def test_too_few_answers_are_refused(rows: list[LoadRow]) -> None:
    with pytest.raises(ConfigError, match="19 whole streamed answers to fit to: at least 20"):
        calibrate(rows[:19], range(19), KNOWN)


def test_engines_have_time_lines_of_their_own() -> None:
    one = records()
    both = [replace(row, engine="a") for row in one] + [replace(row, engine="b") for row in one]
    assert loss(residuals(both, replay(both, TRUTH))) == pytest.approx(0.0, abs=1e-6)
    assert most_at_once(both) == most_at_once(one)


def test_a_client_that_left_loads_the_engine_until_it_does() -> None:
    left = LoadRow(at=0.0, first_at=0.0, last_at=2.0, prompt_tokens=100, output_tokens=10_000, is_whole=False)
    waits = LoadRow(at=0.1, first_at=0.0, last_at=0.0, prompt_tokens=10, output_tokens=2)
    alone = CalibratedEngine(config=replace(TRUTH.config, max_sequences=1, context_tokens=None, kv_tokens=99_999))
    told = replay([left, waits], alone)
    assert told[0].last_at == 0.0
    assert told[1].at == 0.1
    assert 2.0 < told[1].first_at < 2.2


def test_a_pool_that_takes_nothing_is_no_fit() -> None:
    row = LoadRow(at=0.0, first_at=1.0, last_at=2.0, prompt_tokens=9000, output_tokens=5)
    played = replay([row], TRUTH)
    assert unanswered([row], played) == 1
    assert loss(residuals([row], played)) == float("inf")


def test_a_whole_answer_is_compared_by_its_end_alone() -> None:
    rows = [replace(row, is_stream=False) for row in records()[:30]]
    assert {each.metric for each in likenesses(rows, replay(rows, TRUTH))} == {"e2e"}


def test_blocks_alternate_over_the_whole_run(rows: list[LoadRow]) -> None:
    fitted, held_out = by_blocks(rows)
    assert fitted | held_out == set(range(len(rows)))
    assert not fitted & held_out
    assert abs(len(fitted) - len(held_out)) <= 5
    for part in (fitted, held_out):
        assert {rows[index].phase for index in part} == {"single", "at-1", "at-2", "at-3"}


@pytest.mark.parametrize(("begins", "which"), [("burst", "none"), ("", "all")])
def test_phases_that_leave_one_part_empty_are_refused(rows: list[LoadRow], begins: str, which: str) -> None:
    with pytest.raises(ConfigError, match=f"--fit {begins}: {which} of the phases single, at-1"):
        by_phases(rows, [begins])
