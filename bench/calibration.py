"""A simulated engine fitted to a real one, and both under the same load: how far apart are P50 and P95?

    python bench/calibration.py [--engine embedded|vllm] [--rounds 3] [--seconds 30] [--keep FOLDER] [--json] [--gate]

The engine is alone, without a gateway. Each round has two parts: calibration traffic (single requests, then more and
more at once), to which step times are fitted, and an independent Poisson mix of other lengths at two loads, which is
held out. They take turns, so that a machine that gets slower or faster in minutes does so for both. Everything before
the table is measured; the columns ``sim.`` are simulated, from the held-out arrivals and lengths alone. ``--keep``
leaves the records, for ``tidegate simulate calibrate``.

The engine needs the machine for itself: a neighbour that computes makes steps longer at moments that no model knows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.fault_runs.llama import LlamaProcess
from bench.vllm_runs import place
from bench.vllm_runs.server import server as vllm_server
from tidegate.cli.calibration_table import check_table
from tidegate.cli.fitted import Fitted
from tidegate.cli.simulate_calibrate import fitted
from tidegate.load.arrival_times import Drawn
from tidegate.load.calibration_rows import calibration_rows
from tidegate.load.gap_counts import GapCounts
from tidegate.load.plan_options import IGNORE_EOS
from tidegate.load.played import Played
from tidegate.load.rate_curve import constant
from tidegate.load.records_file import write_records
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.load.target import Target
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import Fixed, LogNormal, OneOf
from tidegate.load.workloads.recipe import Recipe
from tidegate.simulate.calibration import Sizes

CALIBRATION = "calibration"
CHECKS = {"below saturation": 0.4, "near saturation": 0.7}
"""Shares of the rate that the engine answered with its batch full, measured anew in each round."""
SINGLES = 6
STEP_S = 6.0
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class RealEngine:
    target: Target
    sizes: Sizes
    users: tuple[int, ...]
    """Of the closed loops; the last one fills the batch."""
    single_tokens: tuple[int, ...]
    mix: Recipe
    """Held out."""
    most_off: float
    """P50 and P95 may be so far off, relative to what was measured."""

    @property
    def steps(self) -> Recipe:
        """The calibration's own lengths."""
        longest = max(self.single_tokens)
        return _recipe("steps", LogNormal(longest / 4, 0.7, 8, longest), LogNormal(20, 0.6, 4, 64))


def _recipe(label: str, prompt: Fixed | LogNormal | OneOf, output: Fixed | LogNormal) -> Recipe:
    return Recipe(label=label, prompt=prompt, output=output, more=IGNORE_EOS, patience_s=PATIENCE_S)


@contextmanager
def embedded(_folder: Path) -> Iterator[RealEngine]:
    """The embedded llama.cpp as ``tidegate serve`` starts it."""
    with LlamaProcess() as process:
        headers = (("authorization", f"Bearer {process.api_key}"),)
        yield RealEngine(
            target=Target(name="llama.cpp", url=f"{process.url}/v1", model="smollm2", headers=headers),
            sizes=Sizes(max_sequences=4, chunk_tokens=64, context_tokens=2048, kv_tokens=4 * 2048),
            users=(2, 4, 8),
            single_tokens=(12, 60, 160, 320),
            mix=_recipe("mix", LogNormal(40, 0.8, 8, 300), LogNormal(16, 0.6, 4, 48)),
            most_off=0.15,
        )


@contextmanager
def vllm(folder: Path) -> Iterator[RealEngine]:
    """A real vLLM on this machine's CPU, of its own environment (``make vllm``)."""
    flags = ("--num-gpu-blocks-override", "1025", "--max-model-len", "2048", "--max-num-seqs", "16")
    with vllm_server(
        str(place.python()), str(place.model()), folder / "vllm.log", *flags, "--enable-prompt-tokens-details"
    ) as started:
        yield RealEngine(
            target=Target(name="vllm", url=f"{started.url}/v1", model="m"),
            sizes=Sizes(max_sequences=16, chunk_tokens=512, context_tokens=2048, kv_tokens=1024 * 32),
            users=(2, 4, 8, 16),
            single_tokens=(12, 100, 400, 1000),
            mix=_recipe("mix", LogNormal(150, 0.8, 8, 1200), LogNormal(40, 0.6, 4, 128)),
            most_off=0.20,
        )


ENGINES = {"embedded": embedded, "vllm": vllm}


class Run:
    """Rounds of calibration and check on one engine."""

    def __init__(self, engine: RealEngine, seconds: float) -> None:
        self.samples: list[Sample] = []
        self._engine = engine
        self._seconds = seconds
        self._zero = time.monotonic()
        self._sender = Sender(engine.target, self._zero)

    async def play(self, rounds: int) -> None:
        try:
            await self._closed("warm-up", Blend(name="warm-up", recipes=(self._engine.steps,)), (1, 5.0, 3), 0)
            for seed in range(rounds):
                await self._calibrate(seed)
                await self._check(seed)
                _say(f"round {seed + 1} of {rounds}: {len(self.samples)} requests")
        finally:
            await self._sender.close()

    async def _calibrate(self, seed: int) -> None:
        for tokens in self._engine.single_tokens:
            recipe = _recipe("single", Fixed(tokens), Fixed(20))
            source = Blend(name=f"single-{tokens}", recipes=(recipe,))
            most = max(1, SINGLES // len(self._engine.single_tokens) + (tokens < 100))
            await self._closed(f"{CALIBRATION}-1", source, (1, STEP_S * 2, most), seed)
        for users in self._engine.users:
            source = Blend(name=f"steps-{users}", recipes=(self._engine.steps,))
            await self._closed(f"{CALIBRATION}-{users}", source, (users, STEP_S, None), seed)

    async def _check(self, seed: int) -> None:
        rate_per_s = await self._full_rate(seed)
        for name, share in CHECKS.items():
            arrivals = Drawn(constant(rate_per_s * share, self._seconds))
            asks = Blend(name=name, recipes=(self._engine.mix,), arrivals=arrivals).asks(seed)
            await self._sender.open_loop(asks, time.monotonic(), self._seconds, self.samples.append, name)

    async def _full_rate(self, seed: int) -> float:
        """Answers per second of the held-out mix with the batch full; what it is measured by is fitted too."""
        before, users = len(self.samples), self._engine.users[-1]
        source = Blend(name="full", recipes=(self._engine.mix,))
        await self._closed(f"{CALIBRATION}-full", source, (users, STEP_S, None), seed)
        # Little's law: counting answers would count the emptying batch of the end as well.
        return users / fmean(sample.e2e_s for sample in self.samples[before:])

    async def _closed(self, phase: str, source: Blend, bounds: tuple[int, float, int | None], seed: int) -> None:
        """``bounds``: users, seconds, requests."""
        users, seconds, count = bounds
        asks = source.asks(seed) if count is None else islice(source.asks(seed), count)
        await self._sender.closed_loop(asks, users, seconds, count, self.samples.append, phase)


def measure(kind: str, rounds: int, seconds: float, keep: Path | None = None) -> tuple[Fitted, float]:
    """The fitted engine beside the real one; and how far off it may be."""
    with tempfile.TemporaryDirectory() as folder, ENGINES[kind](Path(folder)) as engine:
        run = Run(engine, seconds)
        asyncio.run(run.play(rounds))
    if keep is not None:
        _say(f"records: {write_records([_played(run.samples, engine)], keep / f'calibration-{kind}')}")
    sent = [sample for sample in run.samples if sample.phase != "warm-up"]
    return fitted(kind, calibration_rows(sent), engine.sizes, [CALIBRATION]), engine.most_off


def _played(samples: list[Sample], engine: RealEngine) -> Played:
    return Played(
        phase="all",
        target=engine.target.name,
        began_s=0.0,
        ended_s=max(sample.ended_at for sample in samples),
        samples=samples,
        gaps=GapCounts(),
        token_gaps=GapCounts(),
    )


def _plain(kind: str, found: Fitted, most_off: float) -> dict[str, Any]:
    return {
        "engine": kind,
        "bar": most_off,
        "worst_off": found.worst_error,
        "left_out": found.left_out,
        "rows": [
            {
                "load": each.phase,
                "metric": each.metric,
                "share": each.share,
                "count": each.count,
                "measured_s": each.measured_s,
                "simulated_s": each.simulated_s,
                "off": each.error,
            }
            for each in found.check
        ],
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="A fitted simulated engine beside the real one")
    parser.add_argument("--engine", choices=ENGINES, default="embedded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each held-out part of a round")
    parser.add_argument("--keep", type=Path, help="an existing folder for the records")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--gate", action="store_true", help="exit 1 where a P50 or P95 is further off than the bar")
    options = parser.parse_args()
    if options.engine == "vllm" and not place.is_there():
        _say(f"Not measured: {place.MISSING}.")
        return 1 if options.gate else 0
    found, most_off = measure(options.engine, options.rounds, options.seconds, options.keep)
    met = sum(abs(each.error) <= most_off for each in found.check)
    if options.json:
        print(json.dumps(_plain(options.engine, found, most_off), indent=1))
    else:
        console = Console()
        console.print(check_table(found.check))
        console.print(
            f"{met} of {len(found.check)} within {most_off:.0%}; furthest off {found.worst_error:.1%} "
            f"({found.calibration.rows} requests fitted, {len(found.parts[1])} held out)",
            highlight=False,
        )
    return 1 if options.gate and met < len(found.check) else 0


if __name__ == "__main__":
    sys.exit(main())
