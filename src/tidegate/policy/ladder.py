"""What a client gets instead of a refusal: rungs tried in order, each at most once per request.

Rungs: ``cache`` (a stored answer to the same question, labelled with its age) and ``error`` (the
honest refusal, always last). A refusal that no other answer can mend (unknown model, a prompt that
never fits, shutting down) does not walk the ladder. What a rung returns is marked ``degraded`` and
counted apart from success (SPEC S1-03).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.policy.answers import Answers, AnswersConfig
from tidegate.policy.decisions import Answer, Reason, Refuse
from tidegate.policy.request import Request


class Rung(StrEnum):
    CACHE = "cache"
    ERROR = "error"


FINAL = frozenset({Reason.UNKNOWN_MODEL, Reason.NEVER_FITS, Reason.POOL_TOO_SMALL, Reason.SHUTTING_DOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderConfig:
    enabled: bool = True
    order: tuple[Rung, ...] = (Rung.CACHE, Rung.ERROR)
    answers: AnswersConfig = field(default=AnswersConfig())

    def __post_init__(self) -> None:
        if not self.order or self.order[-1] is not Rung.ERROR or len(set(self.order)) != len(self.order):
            raise ValueError("ladder.order names each rung once and ends with 'error'")


class Ladder:
    __slots__ = ("answers", "config")

    def __init__(self, config: LadderConfig) -> None:
        self.config = config
        self.answers = Answers(config.answers)

    @property
    def keeps_answers(self) -> bool:
        return self.config.enabled and Rung.CACHE in self.config.order

    def descend(self, request: Request, refusal: Refuse, now: float) -> Answer | Refuse:
        if not self.keeps_answers or request.cache_key is None or refusal.reason in FINAL:
            return refusal
        found = self.answers.find(request.cache_key, now)
        if found is None:
            return refusal
        return Answer(found[0], found[1], Rung.CACHE.value, refusal.reason)

    def reconfigure(self, config: LadderConfig) -> None:
        self.config = config
        self.answers.reconfigure(config.answers)
