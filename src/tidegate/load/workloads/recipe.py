"""One kind of request: how long, of which words, for whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from tidegate.load.ask import PATIENCE_S, Refusal
from tidegate.load.workloads.given_prompts import GivenPrompts
from tidegate.load.workloads.length_draws import Fixed, Lengths


class Nonce(StrEnum):
    """Words that no other request has, against caches that would answer in the engine's place (SPEC S1-56)."""

    START = "start"
    """Before everything, shared prefixes too: no cache of results or of prefixes has it."""
    END = "end"
    """Behind everything: a cache of results does not have it, one of prefixes may."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """A system prompt that many requests begin with."""

    tokens: int
    count: int = 1
    """Different ones, drawn with equal chances."""
    share: float = 1.0
    """Of the requests, how many have one."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Requests are turns: each repeats all before it, with made-up answers of the length that was asked for."""

    turns: Lengths
    open_sessions: int = 64
    """So many take turns, so that two turns of one are so many requests apart; by Little's law the rate times the time
    that people think."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    label: str
    prompt: Lengths
    """With its nonce and without its prefix; of a conversation: the new words of one turn."""
    output: Lengths = Fixed(64)  # noqa: RUF009 - the value is frozen, so sharing it does no harm
    """The bound that is sent (``max_tokens``)."""
    weight: float = 1.0
    nonce: Nonce = Nonce.START
    is_same: bool = False
    """The same words each time, nonce apart."""
    text: str = ""
    """In place of made-up words; ``prompt`` says about how long it is."""
    given: GivenPrompts | None = None
    """Prompts of a file, in place of made-up words; ``prompt`` has no say then."""
    prefix: SharedPrefix | None = None
    conversation: Conversation | None = None
    tenant: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    stream_share: float = 1.0
    more: str = ""
    """Further fields of the body, as JSON text that begins with a comma."""
    most_prompt_tokens: int | None = None
    """Longer prompts are cut to it; a conversation that would grow beyond it ends."""
    most_output_tokens: int | None = None
    """Larger bounds on the answer are cut to it."""
    context_tokens: int | None = None
    """As ``most_prompt_tokens``, for prompt, chat template and answer together."""
    may_exceed: bool = False
    """Its prompts are longer than fits on purpose; these bounds are not for them."""
    refusal: Refusal | None = None
    patience_s: float = PATIENCE_S
    keeps_text: bool = False
    wants_json: bool = False

    def for_users(self, users: int) -> Recipe:
        """With open sessions enough that no two of a closed loop's users hold the same one."""
        talk = self.conversation
        if talk is None or talk.open_sessions >= 2 * users:
            return self
        return replace(self, conversation=Conversation(talk.turns, 2 * users))

    @property
    def title(self) -> str:
        lengths = f"prompts of {self.given.source}" if self.given else f"{self.prompt.title} in"
        return f"{self.label}: {lengths}, {self.output.title} out"

    def bounded(self, output_tokens: int) -> int:
        """An answer's bound that leaves half of the context to the prompt."""
        bounds = [output_tokens]
        if self.most_output_tokens is not None:
            bounds.append(self.most_output_tokens)
        if self.context_tokens is not None:
            bounds.append(self.context_tokens // 2)
        return max(1, min(bounds))

    def longest_prompt(self, output_tokens: int) -> int | None:
        """Tokens; None: no bound."""
        bounds = [self.most_prompt_tokens] if self.most_prompt_tokens is not None else []
        if self.context_tokens is not None:
            bounds.append(self.context_tokens - output_tokens - TEMPLATE_TOKENS)
        return max(1, min(bounds)) if bounds else None


TEMPLATE_TOKENS = 64
"""Kept free for what a chat template adds."""
