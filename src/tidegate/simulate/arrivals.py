"""When requests come, how long they are, and the demands made from both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from tidegate.simulate.streams import stream
from tidegate.simulate.visit import MODEL, Demand

SMALLEST_BOUND_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Arrival:
    """One row of traffic: ``at`` in seconds from the start."""

    at: float
    prompt_tokens: int
    output_tokens: int
    label: str
    model: str = MODEL
    blocks: tuple[int, ...] = ()
    """Ids of the prompt's blocks (``Demand.blocks``)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One component of a mix; lengths are uniform in the two inclusive ranges of tokens."""

    label: str
    weight: float
    prompt: tuple[int, int]
    output: tuple[int, int]


class Mix:
    """Draws the kind and the lengths of one request after another."""

    def __init__(self, kinds: tuple[Kind, ...], rng: Random) -> None:
        self._kinds = kinds
        self._weights = [kind.weight for kind in kinds]
        self._rng = rng

    def at(self, times: Iterable[float]) -> Iterator[Arrival]:
        for time in times:
            (kind,) = self._rng.choices(self._kinds, self._weights)
            yield Arrival(time, self._rng.randint(*kind.prompt), self._rng.randint(*kind.output), kind.label)


def poisson(rng: Random, rate_per_s: float, start_s: float, end_s: float) -> Iterator[float]:
    """Arrival times of a Poisson process in ``start_s <= t < end_s``."""
    time = start_s
    while (time := time + rng.expovariate(rate_per_s)) < end_s:
        yield time


def client_bound(output_tokens: int) -> int:
    """The max_tokens that a client sends: the next power of two, at least 256.

    Clients set round, generous bounds. It leaves a policy with a bound up to twice the truth, and
    far more for short answers.
    """
    return max(SMALLEST_BOUND_TOKENS, 1 << (output_tokens - 1).bit_length())


def demands(arrivals: Iterable[Arrival], seed: int, patience_s: float) -> list[Demand]:
    """Rows in order of time, with what only the client decides: bound, patience, pause before a retry."""
    rng = stream(seed, "clients")
    return [
        Demand(
            index=index,
            at=arrival.at,
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=arrival.output_tokens,
            max_tokens=client_bound(arrival.output_tokens),
            label=arrival.label,
            patience_s=patience_s,
            retry_delay_s=rng.uniform(0.5, 1.5),
            draw=rng.getrandbits(64),
            model=arrival.model,
            blocks=arrival.blocks,
        )
        for index, arrival in enumerate(sorted(arrivals, key=lambda row: row.at))
    ]
