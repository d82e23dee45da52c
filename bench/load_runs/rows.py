"""The measurements: what a stream costs, how late it is sent, and whether the times are true."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from statistics import median

from bench.load_runs.mock import Mock, Pace, told
from bench.load_runs.streams import EvenStreams
from tidegate.load.crew import Crew
from tidegate.load.phase import Phase
from tidegate.load.played import Played
from tidegate.load.target import Target
from tidegate.simulate.quantile import quantile

RATE = 600.0
TRUTH_RATE = 100.0
"""Of each of the two clients; both run at once, against one mock."""
PACED, AT_ONCE = Pace(), Pace(first_ms=0.0, gap_ms=0.0)
MOST_CPU_MS = 0.7
MOST_CORE_SHARE = 0.5
MOST_LAG_MS = 2.0
MOST_OFF_MS = 1.0
MOST_OFF_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; ``most`` is its bar, None where it has none."""

    name: str
    predicted: str
    measured: float
    unit: str
    most: float | None = None

    @property
    def is_met(self) -> bool:
        return self.most is None or self.measured <= self.most


async def play(mock: Mock, rate: float, seconds: float) -> Played:
    """One process of the generator, after a second that warms it up."""
    target = Target(name="mock", url=mock.url, model="mock-model")
    async with Crew([target], 1, processes=1) as crew:
        source = EvenStreams(rate)
        await crew.play(Phase(name="warm-up", source=source, duration_s=1.0), target)
        return await crew.play(Phase(name="measured", source=source, duration_s=seconds, rate_per_s=rate), target)


def cost(mock: Mock, seconds: float) -> list[Row]:
    """CPU and lateness at 600 streams a second, one process."""
    found: list[Row] = []
    for name, pace, predicted in (("paced", PACED, "0.30-0.45"), ("in one read", AT_ONCE, "0.20-0.35")):
        mock.set_pace(pace)
        played = asyncio.run(play(mock, RATE, seconds))
        answered = sum(sample.is_answered for sample in played.samples)
        lags = sorted(played.lags_s)
        found += [
            Row(f"{name}: CPU per stream of 16 tokens", predicted, 1000 * played.cpu_s / answered, "ms", MOST_CPU_MS),
            Row(f"{name}: share of a core at 600/s", "0.15-0.30", played.busiest_share, "", MOST_CORE_SHARE),
            Row(f"{name}: lag P50", "0.03-0.1", 1000 * quantile(lags, 0.5), "ms"),
            Row(f"{name}: lag P99", "0.1-1 (idle)", 1000 * quantile(lags, 0.99), "ms", MOST_LAG_MS),
            Row(f"{name}: not answered", "0", len(played.samples) - answered, "", 0),
        ]
    return found


def truth(mock: Mock, seconds: float, rounds: int) -> list[Row]:
    """The same percentiles by this generator and by the client in C, at once, against the paced mock."""
    mock.set_pace(PACED)
    pairs: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        ours, theirs = asyncio.run(_both(mock, seconds))
        for name, value in ours.items():
            pairs.setdefault(name, []).append((value, theirs[name]))
    found: list[Row] = []
    for name, values in pairs.items():
        mine, true = (median(each) for each in zip(*values, strict=True))
        # Of each round, since both met the same second of this machine.
        off = median([abs(ours - theirs) - _allowed(theirs) for ours, theirs in values])
        found.append(Row(f"{name}: in C", _expected(name), true, "ms"))
        found.append(Row(f"{name}: here", "as in C", mine, "ms"))
        found.append(Row(f"{name}: off beyond 2 % or 1 ms", "0", max(0.0, off), "ms", 0.0))
    return found


async def _both(mock: Mock, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
    target = Target(name="mock", url=mock.url, model="mock-model")
    async with Crew([target], 1, processes=1) as crew:
        source = EvenStreams(TRUTH_RATE)
        await crew.play(Phase(name="warm-up", source=source, duration_s=1.0), target)
        client = mock.client(TRUTH_RATE, int(TRUTH_RATE * seconds))
        played = await crew.play(Phase(name="measured", source=source, duration_s=seconds), target)
        line = await asyncio.to_thread(told, client)
    ttft = sorted(sample.first_at - sample.due_at for sample in played.samples)
    e2e = sorted(sample.scheduled_e2e_s for sample in played.samples)
    ours = {
        "TTFT P50": 1000 * quantile(ttft, 0.5),
        "TTFT P99": 1000 * quantile(ttft, 0.99),
        "E2E P50": 1000 * quantile(e2e, 0.5),
        "E2E P90": 1000 * quantile(e2e, 0.9),
        "E2E P99": 1000 * quantile(e2e, 0.99),
        "gap P50": 1000 * (played.gaps.quantile(0.5) or 0.0),
        "gap P99": 1000 * (played.gaps.quantile(0.99) or 0.0),
    }
    theirs = dict(zip(("TTFT P50", "TTFT P99"), line["ttft_ms"], strict=False))
    theirs |= dict(zip(("E2E P50", "E2E P90", "E2E P99"), line["lat_ms"], strict=False))
    theirs |= dict(zip(("gap P50", "gap P99"), line["gap_ms"], strict=False))
    return ours, theirs


def _allowed(value_ms: float) -> float:
    return max(MOST_OFF_MS, MOST_OFF_SHARE * value_ms)


def _expected(name: str) -> str:
    """The mock rounds each of its timers up to a millisecond."""
    kind = name.split(" ", maxsplit=1)[0]
    least = {"TTFT": PACED.first_ms, "E2E": PACED.whole_ms, "gap": PACED.gap_ms}[kind]
    timers = PACED.tokens + 1 if kind == "E2E" else 1
    return f"{least:g}-{least + timers:g} (idle)"


def load_average() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())
