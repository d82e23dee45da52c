"""Requests of several kinds, drawn one after the other: what most phases are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from random import Random

from tidegate.load.arrival_times import ArrivalTimes
from tidegate.load.ask import Ask
from tidegate.load.workloads.ask_writer import AskWriter
from tidegate.load.workloads.filler import Filler
from tidegate.load.workloads.given_writer import GivenWriter
from tidegate.load.workloads.recipe import Recipe
from tidegate.simulate.streams import stream

SALT_BITS = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """``name`` is its phase's: two phases of one run have no words in common, the same phase of two runs has all."""

    name: str
    recipes: tuple[Recipe, ...]
    arrivals: ArrivalTimes | None = None
    """None: a closed loop's, without end."""

    salt: str = ""
    """Other nonces and names of sessions, and nothing else, for another one."""

    @property
    def title(self) -> str:
        whole = sum(recipe.weight for recipe in self.recipes)
        kinds = "; ".join(f"{recipe.weight / whole:.0%} {recipe.title}" for recipe in self.recipes)
        return kinds if self.arrivals is None else f"{self.arrivals.title} - {kinds}"

    def salted(self, salt: str) -> Blend:
        return replace(self, salt=salt)

    def asks(self, seed: int) -> Iterator[Ask]:
        purpose = f"load/{self.name}"
        salts = stream(seed, f"{purpose}/salts{self.salt}")
        filler = Filler(stream(seed, f"{purpose}/words"))
        writers = [
            _writer(recipe, filler, stream(seed, f"{purpose}/{place}"), salts.getrandbits(SALT_BITS))
            for place, recipe in enumerate(self.recipes)
        ]
        due = repeat(0.0) if self.arrivals is None else self.arrivals.times(stream(seed, f"{purpose}/arrivals"))
        kinds, bounds = stream(seed, f"{purpose}/kinds"), list(accumulate(recipe.weight for recipe in self.recipes))
        for index, due_s in enumerate(due):
            (writer,) = kinds.choices(writers, cum_weights=bounds)
            yield writer.ask(index, due_s)


def _writer(recipe: Recipe, filler: Filler, rng: Random, salt: int) -> AskWriter | GivenWriter:
    if recipe.given is not None:
        return GivenWriter(recipe, recipe.given, rng, salt)
    return AskWriter(recipe, filler, rng, salt)
