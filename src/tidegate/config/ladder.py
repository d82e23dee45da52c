"""Sections ``ladder`` and ``retries``: what a client gets when the first answer would be no."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Ranged
from tidegate.policy.ladder import LadderConfig
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
    ),
]

Retries = Annotated[
    RetriesConfig,
    Ranged(
        enabled=Field(description="Off: the gateway never tries a second replica."),
        ratio=Field(ge=0, le=1, description="Retries earned by each admitted request (SPEC C7)."),
        floor_per_s=Field(ge=0, description="Retries earned each second, however little traffic there is."),
        most=Field(ge=1, description="Retries that can be saved up."),
        most_continuations=Field(ge=0),
    ),
]
