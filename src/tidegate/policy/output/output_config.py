"""Parameters of looking into answers, for all models and for one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from tidegate.policy.output.problem import Action, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConfig:
    """By default answers are only marked; an empty or a garbled one also counts as a failure of its replica, and is
    asked for once more where the client has seen nothing of it."""

    enabled: bool = True
    """Off: no answer is looked into."""
    streams: bool = True
    """Off: only answers that come whole are looked into, and streams of which the request wants JSON."""
    wants_json: bool = False
    """Every answer must be JSON, also where the request does not ask for it."""
    empty: Action = Action.RETRY_ONCE
    """What is done about an answer without text, tool call or refusal (SPEC S1-77)."""
    truncated: Action = Action.MARK
    """About one that ends too early. Where only its token bound ended it (`finish_reason: length`) it is never more
    than marked, unless that broke its JSON."""
    garbled: Action = Action.RETRY_ONCE
    """About replacement characters, control characters, wrongly decoded text (SPEC S1-77)."""
    format: Action = Action.MARK
    """About text where JSON was asked for, or JSON that does not fit the schema (SPEC S2-39)."""
    repetitive: Action = Action.MARK
    """About the same text over and over (SPEC S2-38). `stop` frees the engine early."""
    faults: tuple[Problem, ...] = (Problem.EMPTY, Problem.GARBLED)
    """Problems that count as a failure of the replica, for its breaker, and of the request, also where the client
    gets the answer."""
    comments: bool = False
    """Say at the end of a marked stream what is wrong with it, as a comment, which clients skip. Off: the bytes of a
    stream are those of the engine."""
    loop_characters: int = 1024
    """Repeated text, in characters, from which it counts as a loop. Rules, tables, padding are shorter."""
    loop_repeats: int = 6
    """How often a part must stand behind itself."""
    garbled_share: float = 0.1
    """Share of bad characters, in the last 1024, from which text counts as garbled."""

    def __post_init__(self) -> None:
        if not 64 <= self.loop_characters <= 65536:
            raise ValueError(f"loop_characters must be from 64 to 65536, got {self.loop_characters}")
        if not 3 <= self.loop_repeats <= 1000:
            raise ValueError(f"loop_repeats must be from 3 to 1000, got {self.loop_repeats}")
        if not 0.0 < self.garbled_share <= 1.0:
            raise ValueError(f"garbled_share must be above 0 and at most 1, got {self.garbled_share}")

    def action(self, problem: Problem) -> Action:
        """What is done about ``problem``."""
        if problem is Problem.EMPTY:
            return self.empty
        if problem is Problem.TRUNCATED:
            return self.truncated
        if problem is Problem.GARBLED:
            return self.garbled
        return self.format if problem is Problem.FORMAT else self.repetitive


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOverride:
    """What is different for one model. None: as for all."""

    enabled: bool | None = None
    """Off: no answer of this model is looked into."""
    streams: bool | None = None
    """Off: only its answers that come whole, and those that want JSON."""
    wants_json: bool | None = None
    """Every answer of this model must be JSON."""
    empty: Action | None = None
    """About an answer without text, tool call or refusal."""
    truncated: Action | None = None
    """About one that ends too early."""
    garbled: Action | None = None
    """About replacement characters, control characters, wrongly decoded text."""
    format: Action | None = None
    """About text where JSON was asked for."""
    repetitive: Action | None = None
    """About the same text over and over."""

    def over(self, usual: OutputConfig) -> OutputConfig:
        """``usual`` with what is different here."""
        given = {each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None}
        return replace(usual, **given) if given else usual
