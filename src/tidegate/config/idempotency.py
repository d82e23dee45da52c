"""Section ``idempotency``: calls that repeat another one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.quantity import SIZE_TEXT
from tidegate.config.section import Ranged
from tidegate.policy.idempotency import IdempotencyConfig

Idempotency = Annotated[
    IdempotencyConfig,
    Ranged(
        enabled=Field(description="Off: an ``Idempotency-Key`` is ignored, and every repeat is computed again."),
        max_age_s=Field(gt=0),
        max_bytes=(Field(ge=1, description="Memory for answers that can be had again."), *SIZE_TEXT),
        max_answer_bytes=(Field(ge=1), *SIZE_TEXT),
        max_answers=Field(ge=1, description="Answers that can be had again, at most."),
        orphan_s=Field(ge=0),
    ),
]
