"""Sections ``ladder`` and ``retries``: what a client gets when the first answer would be no."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Ranged, Section
from tidegate.policy.answers import AnswersConfig
from tidegate.policy.ladder import LadderConfig, Rung
from tidegate.policy.retries import RetriesConfig

Ladder = Annotated[
    LadderConfig,
    Ranged(
        enabled=Field(description="Off (also in ``mode: dev``): a refusal is always the honest error."),
        order=Field(min_length=1, description="Rungs in the order they are tried; ``error`` is the last (SPEC S0-48)."),
        answers=Ranged(
            max_bytes=(Field(ge=1, description="Memory for stored answers."), *SIZE_TEXT),
            max_answer_bytes=(Field(ge=1, description="A longer answer is not stored."), *SIZE_TEXT),
            max_age_s=Field(gt=0),
        ),
        simplify=Ranged(max_tokens=Field(ge=1), keep_messages=Field(ge=1)),
        light_model=Field(min_length=1),
        standby=Field(min_length=1),
        relieve_after_s=Field(gt=0),
        relieve_until_s=Field(ge=0),
        light_wait_s=Field(gt=0),
        slow_ratio=Field(gt=1),
        slow_count=Field(ge=1),
    ),
]


class OwnLadder(Section):
    """What differs for one model from the section ``ladder``. Nothing given: nothing differs."""

    enabled: bool | None = None
    """Off: a refusal for this model is always the honest error."""
    order: Annotated[tuple[Rung, ...], Field(min_length=1)] | None = None
    """Rungs in the order they are tried; ``error`` is the last."""
    light_model: Annotated[str, Field(min_length=1)] | None = None
    """The upstream that stands in with a lighter model (SPEC S0-50)."""
    standby: Annotated[str, Field(min_length=1)] | None = None
    """The upstream that stands in with the same model (SPEC S2-12)."""
    relieve_after_s: Annotated[float, Field(gt=0)] | None = None
    """Predicted wait of its queue above which the longest prompts go to ``light_model``."""
    relieve_until_s: Annotated[float, Field(ge=0)] | None = None
    """Having begun, it goes on until the wait is below this."""
    serve_first: bool | None = None
    """Serve a stored answer before any engine is asked (SPEC S2-11)."""
    max_age_s: Annotated[float, Field(gt=0)] | None = None
    """A stored answer that is older is not served for this model (SPEC S0-49)."""

    def over(self, usual: LadderConfig) -> LadderConfig:
        """The ladder of this model.

        Raises:
            ValueError: the two together make no ladder.
        """
        given = {name: value for name, value in self if value is not None}
        stored = {name: given.pop(name) for name in ("serve_first", "max_age_s") if name in given}
        answers: AnswersConfig = replace(usual.answers, **stored)
        return replace(usual, answers=answers, **given)


Retries = Annotated[
    RetriesConfig,
    Ranged(
        enabled=Field(description="Off: the gateway never tries a second replica."),
        ratio=Field(ge=0, le=1, description="Retries earned by each admitted request (SPEC C7)."),
        floor_per_s=Field(ge=0, description="Retries earned each second, however little traffic there is."),
        most=Field(ge=1, description="Retries that can be saved up."),
        most_continuations=Field(ge=0),
        hedge=Ranged(quantile=Field(ge=0.5, lt=1), budget=Field(gt=0, le=0.5), most_load=Field(gt=0, le=1)),
    ),
]
