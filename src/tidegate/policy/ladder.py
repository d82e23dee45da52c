"""What a client gets instead of a refusal: rungs tried in order, each at most once per request.

    cache             a stored answer to the same question, labelled with its age
    simplify_output   the same model, for an answer of at most so many tokens; on wish without tools and old messages
    light_model       a lighter model with its own capacity, which answers while its own wait is short
    standby           the same model somewhere else, such as at a provider
    error             the honest refusal, always last

Which of them are tried, and in which order, is configurable for every model. A refusal that no other answer can mend
(unknown model, a prompt that never fits, a block, shutting down) does not walk the ladder. What a rung gives is marked
``degraded`` and counted apart from success (SPEC S1-03). A rung that needs an engine re-enters placement, never entry:
what was not charged yet is charged, and nothing else is asked twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.policy.answers import Answers, AnswersConfig
from tidegate.policy.decisions import Answer, Reason
from tidegate.policy.request import Request


class Rung(StrEnum):
    CACHE = "cache"
    SIMPLIFY = "simplify_output"
    LIGHT = "light_model"
    STANDBY = "standby"
    ERROR = "error"


FINAL = frozenset(
    {Reason.UNKNOWN_MODEL, Reason.NEVER_FITS, Reason.POOL_TOO_SMALL, Reason.BLOCKED, Reason.SHUTTING_DOWN}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplifyConfig:
    """A shorter answer of the same model."""

    max_tokens: int = 256
    """Longest answer of the ``simplify_output`` rung; who asked for less gets no shorter one."""
    drop_tools: bool = False
    """Leave ``tools`` and ``functions`` out. Off: an agent that waits for a call of a tool gets none."""
    keep_messages: int | None = None
    """Of a conversation, the system's messages and so many of the last. None: all."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or (self.keep_messages is not None and self.keep_messages < 1):
            raise ValueError(f"ladder.simplify needs max_tokens and keep_messages of at least 1: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderConfig:
    enabled: bool = True
    order: tuple[Rung, ...] = (Rung.CACHE, Rung.SIMPLIFY, Rung.LIGHT, Rung.STANDBY, Rung.ERROR)
    answers: AnswersConfig = field(default=AnswersConfig())
    simplify: SimplifyConfig = field(default=SimplifyConfig())
    light_model: str | None = None
    """The upstream that stands in with a lighter model (SPEC S0-50). None: that rung is passed over."""
    standby: str | None = None
    """The upstream that stands in with the same model (SPEC S2-12). None: that rung is passed over."""
    relieve_after_s: float | None = 0.5
    """Predicted wait of a whole queue above which the longest prompts in it go to ``light_model``, before anybody is
    refused. None: only what would be refused goes there."""
    relieve_until_s: float = 0.3
    """Having begun, it goes on until the wait is below this."""
    light_wait_s: float = 1.0
    """The lighter model is no help while its own queue is longer than that."""
    slow_ratio: float | None = 3.0
    """A first byte that takes so many times what is usual for its prompt is slow. None: a model is never slow."""
    slow_count: int = 4
    """So many slow ones in a row send all requests to ``light_model``, until probes find the model well again
    (SPEC S0-50, S0-53). With 5, simulated, 98.9 % of a slow model's requests were answered in 1.5 s, with 4 99.1 %."""

    def __post_init__(self) -> None:
        if not self.order or self.order[-1] is not Rung.ERROR or len(set(self.order)) != len(self.order):
            raise ValueError("ladder.order names each rung once and ends with 'error'")
        if self.light_wait_s <= 0 or self.relieve_until_s < 0:
            raise ValueError(f"ladder needs light_wait_s > 0 and relieve_until_s >= 0: {self}")
        if self.slow_count < 1 or (self.slow_ratio is not None and self.slow_ratio <= 1):
            raise ValueError(f"ladder needs slow_count >= 1 and slow_ratio > 1: {self}")
        if self.relieve_after_s is not None and self.relieve_after_s < self.relieve_until_s:
            raise ValueError(f"ladder needs relieve_after_s >= relieve_until_s: {self}")

    def target(self, rung: Rung) -> str | None:
        """The upstream that ``rung`` leads to."""
        return self.light_model if rung is Rung.LIGHT else self.standby if rung is Rung.STANDBY else None

    @property
    def keeps_answers(self) -> bool:
        return self.enabled and (Rung.CACHE in self.order or self.answers.serve_first)

    @property
    def has_light_model(self) -> bool:
        return self.enabled and self.light_model is not None and Rung.LIGHT in self.order

    @property
    def relieves(self) -> bool:
        """Long waits are shortened with the lighter model."""
        return self.has_light_model and self.relieve_after_s is not None

    @property
    def diverts(self) -> bool:
        """The lighter model answers while this one is slow."""
        return self.has_light_model and self.slow_ratio is not None


class Ladder:
    """The configuration of every model's ladder, and the answers that are kept."""

    __slots__ = ("answers", "config", "named")

    def __init__(self, config: LadderConfig) -> None:
        self.config = config
        self.named: dict[str, LadderConfig] = {}
        """Of models that have their own."""
        self.answers = Answers(config.answers)

    @property
    def keeps_answers(self) -> bool:
        """Some model's ladder serves stored answers."""
        return self.config.keeps_answers or any(each.keeps_answers for each in self.named.values())

    def of(self, model: str) -> LadderConfig:
        return self.named.get(model, self.config)

    def stored(self, config: LadderConfig, request: Request, now: float) -> Answer | None:
        """What was answered to the same question before, if it is young enough for this model."""
        if request.cache_key is None:
            return None
        found = self.answers.find(request.cache_key, now, config.answers.max_age_s)
        return None if found is None else Answer(*found)

    def reconfigure(self, config: LadderConfig, named: dict[str, LadderConfig]) -> None:
        self.config, self.named = config, named
        self.answers.reconfigure(config.answers)
