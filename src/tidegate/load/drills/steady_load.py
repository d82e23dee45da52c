"""The load that a drill runs under: short chats, evenly spaced, each with an id that is found again everywhere."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.load.ask import Ask
from tidegate.load.drills.drill_pace import Pace

STREAMS = 0.75
"""Share of streams; the others are whole answers."""
TOPICS = ("the sea", "a lighthouse", "the tide", "a harbour", "sailing", "rain", "a map", "the moon")


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyLoad:
    """Endless, unless ``count`` ends it."""

    name: str
    """Begins every request id."""
    rate_per_s: float
    pace: Pace
    label: str = "steady"
    count: int | None = None

    @property
    def title(self) -> str:
        return f"short chats, {self.rate_per_s:g} a second, {self.pace.tokens} tokens each"

    def asks(self, seed: int) -> Iterator[Ask]:
        dice = random.Random(seed)  # noqa: S311 - equal seeds give equal traffic; nothing is secret
        index = 0
        while self.count is None or index < self.count:
            yield self._ask(index, dice)
            index += 1

    def _ask(self, index: int, dice: random.Random) -> Ask:
        request_id = f"{self.name}-{index}"
        is_stream = dice.random() < STREAMS
        return Ask(
            index=index,
            due_s=index / self.rate_per_s,
            label=self.label,
            body=chat_body(
                f"Request {request_id}: say something about {dice.choice(TOPICS)}.", self.pace.tokens, is_stream
            ),
            headers=(("x-request-id", request_id),),
            is_stream=is_stream,
            max_tokens=self.pace.tokens,
            patience_s=self.pace.patience_s,
            extra={"request_id": request_id},
        )


def chat_body(text: str, tokens: int, is_stream: bool) -> bytes:
    """What follows the model in a chat request; the answer has exactly so many tokens where the engine can."""
    fields = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": is_stream,
        **({"stream_options": {"include_usage": True}} if is_stream else {}),
    }
    return b"," + json.dumps(fields).encode()[1:]
