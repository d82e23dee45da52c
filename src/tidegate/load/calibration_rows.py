"""What a calibration takes from the records of a load run, and what it leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.errors import ConfigError
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.sample import Sample
from tidegate.simulate.load_row import LoadRow

UNKNOWN_OUTPUT_TOKENS = 100_000
"""Of an answer that nobody waited for, where the request had no bound: more than fits, so that it ends by leaving."""


@dataclass(slots=True)
class CalibrationRows:
    """Everything that loaded the engine, in order of time."""

    rows: list[LoadRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Requests that no simulated engine gets, by reason."""


def calibration_rows(samples: Iterable[Sample], target: str | None = None) -> CalibrationRows:
    """Of one target; each replica that it names is an engine of its own.

    Raises ConfigError where several targets are in the records and none is named, or none has the name.
    """
    given = list(samples)
    names = list(dict.fromkeys(sample.target for sample in given))
    if target is None and len(names) > 1:
        raise ConfigError([f"--target: the records are of {len(names)} targets: name one of {', '.join(names)}"])
    if target is not None and target not in names:
        raise ConfigError([f"--target {target}: the records are of {', '.join(names) or 'nothing'}"])
    found = CalibrationRows()
    for sample in given:
        if target is not None and sample.target != target:
            continue
        why = _why_not(sample)
        if why:
            found.left_out[why] += 1
        else:
            found.rows.append(_row(sample))
    found.rows.sort(key=lambda row: row.at)
    return found


def _why_not(sample: Sample) -> str:
    if sample.outcome not in {ClientOutcome.OK, ClientOutcome.TIMEOUT}:
        return sample.outcome.value
    if not (sample.prompt_tokens or sample.meant_tokens):
        return "no prompt length"
    if sample.outcome is ClientOutcome.OK and sample.output_tokens < 1:
        return "no token count"
    return "tried on several replicas" if sample.attempts > 1 else ""


def _row(sample: Sample) -> LoadRow:
    is_whole = sample.outcome is ClientOutcome.OK
    at = sample.sent_at + (sample.queue_s or 0.0)
    prompt = sample.prompt_tokens or sample.meant_tokens
    ended_at = sample.last_at if is_whole and sample.is_stream and sample.last_at else sample.ended_at
    return LoadRow(
        at=at,
        first_at=max(at, sample.first_at),
        last_at=max(at, ended_at),
        prompt_tokens=max(1, prompt - sample.cached_tokens),
        output_tokens=sample.output_tokens if is_whole else sample.max_tokens or UNKNOWN_OUTPUT_TOKENS,
        max_tokens=sample.max_tokens,
        phase=sample.phase,
        engine=sample.replica or sample.target,
        label=sample.label,
        tenant=sample.tenant,
        is_stream=sample.is_stream and sample.first_at > 0.0,
        is_whole=is_whole,
    )
