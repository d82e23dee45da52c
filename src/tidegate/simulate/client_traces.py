"""Clients of one model in production, by rate, burstiness and lengths: ServeGen's format, or a generated look-alike.

The folder in ``TIDEGATE_TRACES`` holds ``servegen/m-large/``: for each client a ``chunk-N-trace.csv`` (a row per ten
minutes: start in seconds, requests a second, coefficient of variation, then the family of gaps between requests with
its shape and scale) and for the largest ones a ``chunk-N-dataset.json`` (histograms of prompt and answer lengths per
six hours). Clients without lengths of their own take those of one that has some, in turn. Source: ServeGen,
arXiv 2505.09999 (Apache-2.0). Nothing of it is shipped.
"""

from __future__ import annotations

import csv
import json
import os
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass
from math import gamma
from pathlib import Path
from random import Random

from tidegate.errors import ConfigError
from tidegate.simulate.streams import stream
from tidegate.simulate.traces import FOLDER_VARIABLE

FOLDER = "servegen/m-large"
WINDOW_S = 600.0
NOON_S = 43_200.0
"""Which window is played: the one that starts at noon of the first day."""
LIKENESS_CLIENTS = 60
LIKENESS_SKEW = 1.5
"""Rate of the k-th client ~ 1 / k ** skew: a quarter of them then carry nine tenths of the load, as in the source."""

Lengths = tuple[list[int], list[float]]
"""Values and their weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedClient:
    """One client in one window."""

    name: str
    rate_per_s: float
    family: str
    """Of the gaps between its requests: Gamma or Weibull."""
    shape: float
    prompt: Lengths
    output: Lengths

    def times(self, rng: Random, factor: float, end_s: float) -> Iterator[float]:
        """When it calls at ``factor`` x its rate, up to ``end_s``."""
        mean_s = 1 / (self.rate_per_s * factor)
        time = rng.uniform(0.0, mean_s)
        while time < end_s:
            yield time
            time += self._gap_s(rng, mean_s)

    def _gap_s(self, rng: Random, mean_s: float) -> float:
        if self.family == "Weibull":
            return rng.weibullvariate(mean_s / gamma(1 + 1 / self.shape), self.shape)
        return rng.gammavariate(self.shape, mean_s / self.shape)


def load_clients(seed: int) -> tuple[list[TracedClient], str]:
    """The clients that call at noon, the busiest first, and where they come from.

    Raises ConfigError when the folder is named and does not hold them, or not in this format.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return _lookalike(seed), f"generated look-alike of ServeGen's clients (set {FOLDER_VARIABLE} for real ones)"
    folder = Path(named) / FOLDER
    traces = sorted(folder.glob("chunk-*-trace.csv"))
    if not traces:
        raise ConfigError([f"{FOLDER_VARIABLE}: {folder} holds no chunk-N-trace.csv; unset it to use the look-alike"])
    try:
        found = _read(traces)
    except (KeyError, IndexError, TypeError, ValueError, SyntaxError) as error:
        raise ConfigError([f"{folder}: not the expected format of ServeGen ({error!r})"]) from error
    return sorted(found, key=lambda client: (-client.rate_per_s, client.name)), f"clients of {FOLDER}"


def _read(traces: list[Path]) -> list[TracedClient]:
    known = {path.name: lengths for path in traces if (lengths := _lengths(path)) is not None}
    if not known:
        raise ValueError("no chunk-N-dataset.json with lengths")
    in_turn, found = list(known.values()), []
    for index, path in enumerate(traces):
        with path.open(newline="", encoding="utf-8") as file:
            row = next((row for row in csv.reader(file) if float(row[0]) >= NOON_S), None)
        if row is None or float(row[1]) <= 0:
            continue
        prompt, output = known.get(path.name, in_turn[index % len(in_turn)])
        name = path.name.removeprefix("chunk-").removesuffix("-trace.csv")
        found.append(
            TracedClient(
                name=f"client-{name}",
                rate_per_s=float(row[1]),
                family=row[3],
                shape=float(row[4]) or 1.0,
                prompt=prompt,
                output=output,
            )
        )
    return found


def _lengths(trace: Path) -> tuple[Lengths, Lengths] | None:
    """Of the first window from noon on that has some."""
    path = trace.with_name(trace.name.replace("-trace.csv", "-dataset.json"))
    if not path.exists():
        return None
    for start, window in json.loads(path.read_text(encoding="utf-8")).items():
        prompt, output = literal_eval(str(window["input_tokens"])), literal_eval(str(window["output_tokens"]))
        if float(start) >= NOON_S and prompt and output:
            return ([*prompt], [*prompt.values()]), ([*output], [*output.values()])
    return None


def _lookalike(seed: int) -> list[TracedClient]:
    rng = stream(seed, "clients/lookalike")
    return [
        TracedClient(
            name=f"client-{index}",
            rate_per_s=1 / (index + 1) ** LIKENESS_SKEW,
            family="Gamma",
            shape=rng.uniform(0.2, 1.2),
            prompt=_around(rng, rng.uniform(5.0, 7.0)),
            output=_around(rng, rng.uniform(3.0, 5.5)),
        )
        for index in range(LIKENESS_CLIENTS)
    ]


def _around(rng: Random, mu: float) -> Lengths:
    """Twenty lengths from a log-normal, equally likely."""
    return [max(2, min(4000, round(rng.lognormvariate(mu, 0.5)))) for _ in range(20)], [1.0] * 20
