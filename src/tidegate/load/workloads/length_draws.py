"""How many tokens a prompt or an answer has."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Protocol


class Lengths(Protocol):
    """A distribution of whole numbers of tokens; picklable."""

    @property
    def title(self) -> str: ...

    def draw(self, rng: Random) -> int: ...


@dataclass(frozen=True, slots=True)
class Fixed:
    tokens: int

    @property
    def title(self) -> str:
        return f"{self.tokens}"

    def draw(self, _rng: Random) -> int:
        return self.tokens


@dataclass(frozen=True, slots=True)
class Uniform:
    """Both ends belong to it."""

    least: int
    most: int

    @property
    def title(self) -> str:
        return f"{self.least}-{self.most}"

    def draw(self, rng: Random) -> int:
        return rng.randint(self.least, self.most)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """What chat prompts look like: many short ones and a long tail. Values outside the bounds are put on them."""

    median: float
    sigma: float
    """Standard deviation of the logarithm."""
    least: int
    most: int

    @property
    def title(self) -> str:
        return f"log-normal {self.median:g} (sigma {self.sigma:g}, {self.least}-{self.most})"

    def draw(self, rng: Random) -> int:
        return min(self.most, max(self.least, round(self.median * rng.lognormvariate(0.0, self.sigma))))


@dataclass(frozen=True, slots=True)
class Observed:
    """Drawn with replacement from what was seen: a trace's or a log's lengths."""

    tokens: tuple[int, ...]
    source: str

    @property
    def title(self) -> str:
        return f"{min(self.tokens)}-{max(self.tokens)} of {self.source}"

    def draw(self, rng: Random) -> int:
        return rng.choice(self.tokens)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A mixture: a weight and a distribution each."""

    parts: tuple[tuple[float, Lengths], ...]

    @property
    def title(self) -> str:
        whole = sum(weight for weight, _ in self.parts)
        return " or ".join(f"{lengths.title} ({weight / whole:.0%})" for weight, lengths in self.parts)

    def draw(self, rng: Random) -> int:
        (lengths,) = rng.choices([part for _, part in self.parts], [weight for weight, _ in self.parts])
        return lengths.draw(rng)
