"""Conversations on engines with a prefix cache: what it is worth to come back to the replica that knows them.

Five applications with system prompts of one to five blocks, of which the first has half of the users; conversations
of eight turns on average, with 20 s between two turns. Each prompt is the one before it, the answer and a new
question. Arrivals do not wait for answers, so that all policies meet the same traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Arrival, demands, poisson
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import BLOCK_TOKENS

ENGINES = 4
APPLICATIONS = 5
TURNS = 8
THINKING_S = 20.0
QUESTION_TOKENS = (20, 800)
ANSWER_TOKENS = (50, 400)
MOST_PROMPT_TOKENS = 30_000


@dataclass(frozen=True, slots=True)
class Sessions:
    rate_per_s: float
    """Turns of all conversations."""
    duration_s: float = 300.0
    patience_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> Sessions:
        return cls(positive_number("sessions", argument, 16.0))

    def build(self, seed: int) -> Scenario:
        engine = replace(preset("A100", "llama-3-8b", chunk_tokens=2048), cached_block_tokens=BLOCK_TOKENS)
        rng = stream(seed, "sessions")
        begins = poisson(stream(seed, "arrivals"), self.rate_per_s / TURNS, -TURNS * THINKING_S, self.duration_s)
        rows = [turn for number, at in enumerate(begins) for turn in _turns(number, at, rng)]
        return Scenario(
            name=f"sessions@{self.rate_per_s:g}",
            engines=(engine,) * ENGINES,
            demands=demands((row for row in rows if 0 <= row.at < self.duration_s), seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
            source="generated conversations",
        )


def _turns(number: int, at: float, rng: Random) -> Iterator[Arrival]:
    (application,) = rng.choices(range(APPLICATIONS), [2 ** -(index + 1) for index in range(APPLICATIONS)])
    shared = application + 1
    prompt_tokens = shared * BLOCK_TOKENS
    while prompt_tokens < MOST_PROMPT_TOKENS:
        prompt_tokens += rng.randint(*QUESTION_TOKENS)
        answer_tokens = rng.randint(*ANSWER_TOKENS)
        own = range(shared, prompt_tokens // BLOCK_TOKENS)
        blocks = (*(_id(application, 0, index) for index in range(shared)), *(_id(9, number, index) for index in own))
        yield Arrival(at, prompt_tokens, answer_tokens, "turn", blocks=blocks)
        if rng.random() < 1 / TURNS:
            return
        prompt_tokens += answer_tokens
        at += rng.expovariate(1 / THINKING_S)


def _id(kind: int, number: int, index: int) -> int:
    return (kind * 1_000_000 + number) * 1000 + index
