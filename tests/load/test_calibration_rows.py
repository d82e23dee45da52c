from __future__ import annotations

import msgspec
import pytest

from tidegate.errors import ConfigError
from tidegate.load.calibration_rows import UNKNOWN_OUTPUT_TOKENS, calibration_rows
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.sample import Sample


def sample(**fields: object) -> Sample:
    whole = {
        "phase": "mix",
        "target": "engine",
        "index": 0,
        "label": "chat",
        "due_at": 1.0,
        "sent_at": 1.0,
        "first_at": 1.5,
        "last_at": 2.5,
        "ended_at": 2.6,
        "outcome": ClientOutcome.OK,
        "prompt_tokens": 100,
        "output_tokens": 11,
        "max_tokens": 64,
    }
    return Sample(**{**whole, **fields})  # type: ignore[arg-type]  # fields by name


def test_an_answer_becomes_a_row_with_the_times_of_its_tokens() -> None:
    (row,) = calibration_rows([sample(cached_tokens=30, tenant="a")]).rows
    assert (row.at, row.first_at, row.last_at, row.prompt_tokens) == (1.0, 1.5, 2.5, 70)
    assert (row.ttft_s, row.e2e_s) == (0.5, 1.5)
    assert row.tpot_s == pytest.approx(0.1)
    assert (row.engine, row.label, row.tenant, row.max_tokens) == ("engine", "chat", "a", 64)


def test_what_a_gateway_queued_reached_the_engine_later() -> None:
    (row,) = calibration_rows([sample(queue_s=0.25, replica="r1")]).rows
    assert (row.at, row.engine) == (1.25, "r1")


def test_an_answer_that_came_whole_ends_when_its_body_did() -> None:
    (row,) = calibration_rows([sample(is_stream=False)]).rows
    assert (row.last_at, row.tpot_s) == (2.6, None)


@pytest.mark.parametrize(("most", "output"), [(64, 64), (0, UNKNOWN_OUTPUT_TOKENS)])
def test_a_client_that_left_is_kept_as_load(most: int, output: int) -> None:
    left = sample(outcome=ClientOutcome.TIMEOUT, prompt_tokens=0, meant_tokens=80, max_tokens=most)
    (row,) = calibration_rows([left]).rows
    assert (row.is_whole, row.prompt_tokens, row.output_tokens, row.last_at) == (False, 80, output, 2.6)


def test_what_no_simulated_engine_gets_is_counted_by_reason() -> None:
    found = calibration_rows(
        [
            sample(outcome=ClientOutcome.SHED),
            sample(outcome=ClientOutcome.DEGRADED),
            sample(prompt_tokens=0),
            sample(output_tokens=0),
            sample(attempts=2),
            sample(sent_at=9.0),
            sample(sent_at=0.5),
        ]
    )
    assert found.left_out == {
        "shed": 1,
        "degraded": 1,
        "no prompt length": 1,
        "no token count": 1,
        "tried on several replicas": 1,
    }
    assert [row.at for row in found.rows] == [0.5, 9.0]


def test_one_of_several_targets_has_to_be_named() -> None:
    both = [sample(), msgspec.structs.replace(sample(), target="other")]
    with pytest.raises(ConfigError, match="records are of 2 targets: name one of engine, other"):
        calibration_rows(both)
    with pytest.raises(ConfigError, match="--target third: the records are of engine, other"):
        calibration_rows(both, "third")
    assert len(calibration_rows(both, "other").rows) == 1
