"""Records of a load run as an engine of known costs would have left them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tidegate.engines.step_model import SimulatedConfig, StepModel
from tidegate.simulate.calibrated_engine import CalibratedEngine
from tidegate.simulate.load_replay import replay
from tidegate.simulate.load_row import LoadRow

TRUTH = CalibratedEngine(
    config=SimulatedConfig(
        step=replace(StepModel.from_ms(6.0, 0.9, 2.5, 0.002, 0.0004), quadratic_from_tokens=0),
        kv_tokens=4 * 2048,
        max_sequences=4,
        chunk_tokens=128,
        context_tokens=2048,
    ),
    overhead_s=0.004,
)


def records(truth: CalibratedEngine = TRUTH, seed: int = 1, noise: float = 0.0) -> list[LoadRow]:
    """Singles of several lengths, then more and more at once; ``noise``: of every time, relative, as a machine adds."""
    asked = list(_asked(Random(seed)))
    shaken = Random(seed + 1)
    found = []
    for row, told in zip(asked, replay(asked, truth), strict=True):
        factor = 1 + shaken.uniform(-noise, noise)
        first_at = row.at + (told.first_at - row.at) * factor
        found.append(replace(row, first_at=first_at, last_at=first_at + (told.last_at - told.first_at) * factor))
    return found


def _asked(rng: Random) -> Iterator[LoadRow]:
    for index in range(12):
        yield _row(index * 5.0, (16, 100, 400, 1200)[index % 4], 24, "single")
    at = 100.0
    for rate_per_s in (1.0, 2.0, 3.0):
        for _ in range(14):
            at += rng.expovariate(rate_per_s)
            yield _row(at, rng.randint(8, 500), rng.randint(4, 60), f"at-{rate_per_s:g}")
        at += 60.0


def _row(at: float, prompt_tokens: int, output_tokens: int, phase: str) -> LoadRow:
    return LoadRow(
        at=at, first_at=at, last_at=at, prompt_tokens=prompt_tokens, output_tokens=output_tokens, phase=phase
    )
