"""What can be wrong with an answer that came with status 200, and what is done about it (SPEC S2-39, S1-77)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Problem(StrEnum):
    """The value is the error's ``code``, the metric's label and the record's ``output_problem``."""

    # By value, which is C; Enum's own hash is a Python function.
    __hash__ = str.__hash__

    EMPTY = "output_empty"
    """No text, no tool call and no refusal."""
    TRUNCATED = "output_truncated"
    """It ends before it is complete: at a token bound, in the middle of JSON, or without saying that it ends."""
    GARBLED = "output_garbled"
    """Replacement characters, control characters, text decoded wrongly, or events that are no JSON."""
    FORMAT = "output_format"
    """JSON was asked for, and this is none, or does not fit its schema."""
    REPETITIVE = "output_repetitive"
    """It says the same over and over (SPEC S2-38, S1-78)."""


class Action(StrEnum):
    """What is done about a problem."""

    MARK = "mark"
    """Count it, record it, label the answer; the client gets it as it is."""
    STOP = "stop"
    """End the stream with a typed error and abort the engine; a whole answer becomes that error."""
    RETRY_ONCE = "retry_once"
    """Ask another replica once, where the client has seen nothing yet; else ``mark``."""
    DEGRADE = "degrade"
    """Walk the ladder where the client has seen nothing yet; else ``stop``."""


@dataclass(slots=True)
class Finding:
    """One problem of one answer."""

    problem: Problem
    evidence: str
    """For people, of our own words and figures: nothing of what the model wrote."""
    is_bound: bool = False
    """The answer is only as long as it was allowed to be (``finish_reason: length``): never more than a mark."""
