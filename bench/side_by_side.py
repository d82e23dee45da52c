"""The same plan on the same real engines: alone, through Tidegate, and through others.

    python bench/side_by_side.py [--turns 3] [--seconds 30] [--loads 0.6,2] [--json] [FRONT …]

Two embedded llama.cpp engines stay up all the time; the fronts before them are loaded in turns, each with the same
requests (nonces apart, so that no cache answers for an engine), in another order in each round. The loads are shares of
what the two engines answer with full batches, measured first. Fronts that are not installed are left out, with a line
that says so. Figures are the load generator's own (``tidegate.load.measures``); docs/benchmarks.md defines them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.fault_runs.llama import LlamaProcess
from bench.front_runs.fronts import FRONTS, Front, Place, Urls
from tidegate.load.arrival_times import Drawn
from tidegate.load.client_outcome import ERRORS, ClientOutcome
from tidegate.load.gap_counts import GapCounts
from tidegate.load.measures import measure
from tidegate.load.phase import Phase
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Objective, Plan
from tidegate.load.plan_options import IGNORE_EOS
from tidegate.load.played import Played
from tidegate.load.rate_curve import constant
from tidegate.load.sample import Sample
from tidegate.load.sender import Sender
from tidegate.load.target import Target
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.length_draws import LogNormal
from tidegate.load.workloads.recipe import Recipe

ENGINES = 2
MODEL = "smollm2"
PATIENCE_S = 20.0
OBJECTIVE = Objective(ttft_s=2.0, e2e_s=10.0)
"""SPEC S1-46 and S1-48: two seconds until an answer begins, ten until it is whole."""
CHAT = Recipe(
    label="chat",
    prompt=LogNormal(40, 0.8, 8, 300),
    output=LogNormal(16, 0.6, 4, 48),
    more=IGNORE_EOS,
    patience_s=PATIENCE_S,
)
CAPACITY_S = 15.0
REST_S = 2.0
"""Between two turns, for llama.cpp to notice who has left: it does within about a second."""


@dataclass
class Comparison:
    """All turns of all fronts."""

    place: Place
    seconds: float
    zero: float = field(default_factory=time.monotonic)
    capacity_per_s: float = 0.0
    played: dict[tuple[float, str], list[Played]] = field(default_factory=dict)
    """By load and front."""

    async def find_capacity(self) -> None:
        samples: list[Sample] = []
        senders = [Sender(_target("capacity", url, self.place), self.zero) for url in self.place.urls]
        began = time.monotonic()
        try:
            await asyncio.gather(
                *(
                    sender.closed_loop(
                        Blend(name=f"capacity-{index}", recipes=(CHAT,)).asks(0), 8, CAPACITY_S, None, samples.append
                    )
                    for index, sender in enumerate(senders)
                )
            )
        finally:
            await asyncio.gather(*(sender.close() for sender in senders))
        self.capacity_per_s = len(samples) / (time.monotonic() - began)

    async def turn(self, front: str, urls: Urls, load: float, index: int) -> None:
        """The same asks for each front; several URLs take them in turns."""
        source = self.source(load).salted(f"{front}-{index}")
        samples: list[Sample] = []
        senders = [Sender(_target(front, url, self.place), self.zero) for url in urls]
        began = time.monotonic()
        try:
            await asyncio.gather(
                *(
                    sender.open_loop(
                        islice(source.asks(index), place, None, len(urls)),
                        began,
                        self.seconds,
                        samples.append,
                        self.phase(load).name,
                    )
                    for place, sender in enumerate(senders)
                )
            )
        finally:
            await asyncio.gather(*(sender.close() for sender in senders))
        self.played.setdefault((load, front), []).append(self._played(front, began, samples, senders, load))
        await asyncio.sleep(REST_S)

    def source(self, load: float) -> Blend:
        arrivals = Drawn(constant(self.capacity_per_s * load, self.seconds))
        return Blend(name=f"load-{load:g}", recipes=(CHAT,), arrivals=arrivals)

    def phase(self, load: float) -> Phase:
        return Phase(
            name=f"{load:g} x capacity",
            source=self.source(load),
            duration_s=self.seconds,
            rate_per_s=self.capacity_per_s * load,
        )

    def figures(self, load: float, front: str) -> PhaseFigures:
        phase = self.phase(load)
        plan = Plan(name="side-by-side", seed=0, phases=(phase,), objective=OBJECTIVE)
        return measure(phase, self.played[load, front], plan)

    def _played(
        self, front: str, began: float, samples: list[Sample], senders: Sequence[Sender], load: float
    ) -> Played:
        gaps, token_gaps = GapCounts(), GapCounts()
        for sender in senders:
            gaps.merge(sender.gaps.buckets.items())
            token_gaps.merge(sender.token_gaps.buckets.items())
        return Played(
            phase=self.phase(load).name,
            target=front,
            began_s=began - self.zero,
            ended_s=time.monotonic() - self.zero,
            samples=samples,
            gaps=gaps,
            token_gaps=token_gaps,
            lags_s=[sample.lag_s for sample in samples if sample.outcome is not ClientOutcome.UNSENT],
        )


def _target(name: str, url: str, place: Place) -> Target:
    return Target(name=name, url=f"{url}/v1", model=MODEL, headers=(("authorization", f"Bearer {place.api_key}"),))


async def play(
    comparison: Comparison, fronts: Sequence[tuple[Front, Urls]], loads: Sequence[float], turns: int
) -> None:
    await comparison.find_capacity()
    _say(f"two engines with full batches: {comparison.capacity_per_s:.2f} answers a second")
    for index in range(turns):
        for load in loads:
            first = index % len(fronts)
            for front, urls in (*fronts[first:], *fronts[:first]):
                await comparison.turn(front.name, urls, load, index)
        _say(f"turn {index + 1} of {turns} played")


def plain(found: PhaseFigures) -> dict[str, Any]:
    """One row of the table; seconds and shares."""
    whole, outcomes = found.all, found.all.outcomes
    return {
        "due": whole.due,
        "ttft_p50_s": whole.ttft.p50 if whole.ttft else None,
        "ttft_p99_s": whole.ttft.p99 if whole.ttft else None,
        "tpot_p50_s": whole.tpot.p50 if whole.tpot else None,
        "e2e_p50_s": whole.e2e.p50 if whole.e2e else None,
        "e2e_p99_s": whole.e2e.p99 if whole.e2e else None,
        "jitter": whole.e2e.jitter if whole.e2e else None,
        "answered": outcomes.get(ClientOutcome.OK, 0),
        "degraded": outcomes.get(ClientOutcome.DEGRADED, 0),
        "shed": outcomes.get(ClientOutcome.SHED, 0),
        "gave_up": outcomes.get(ClientOutcome.TIMEOUT, 0),
        "other_errors": sum(outcomes.get(each, 0) for each in ERRORS if each is not ClientOutcome.TIMEOUT),
        "codes": dict(found.codes),
        "late": whole.late,
        "goodput_share": whole.goodput_share,
        "goodput_per_s": whole.goodput_per_s,
    }


HEADINGS = (
    "| load | front | TTFT P50/P99 s | TPOT P50 ms | E2E P50/P99 s | P99/P50 | answered / degraded / shed / gave up / "
    "other errors, of due | late | goodput |"
)


def table(rows: Sequence[tuple[float, str, dict[str, Any]]]) -> str:
    lines = [HEADINGS, "|---" * HEADINGS.count(" | ") + "|---|"]
    for load, front, row in rows:
        ends = " / ".join(str(row[name]) for name in ("answered", "degraded", "shed", "gave_up", "other_errors"))
        tpot_ms = None if row["tpot_p50_s"] is None else row["tpot_p50_s"] * 1e3
        lines.append(
            f"| {load:g} x | {front} | {_text(row['ttft_p50_s'])} / {_text(row['ttft_p99_s'])} | {_text(tpot_ms, 0)} | "
            f"{_text(row['e2e_p50_s'])} / {_text(row['e2e_p99_s'])} | {_text(row['jitter'], 1)} | "
            f"{ends}, of {row['due']} | {row['late']} | {row['goodput_share']:.0%} ({row['goodput_per_s']:.2f}/s) |"
        )
    return "\n".join(lines)


def _codes(codes: dict[str, int]) -> str:
    return ", ".join(f"{count} x {code or 'no code'}" for code, count in codes.items())


def _text(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen(names: Sequence[str]) -> list[Front]:
    """Installed ones; others are told."""
    found = []
    for front in FRONTS:
        if names and front.name not in names:
            continue
        why_not = front.why_not()
        if why_not:
            _say(f"{front.name}: left out, {why_not}")
        else:
            found.append(front)
    return found


def run(fronts: Sequence[Front], loads: Sequence[float], turns: int, seconds: float) -> Comparison:
    key = secrets.token_urlsafe(24)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engines = [stack.enter_context(LlamaProcess(api_key=key)) for _ in range(ENGINES)]
        place = Place(folder, tuple(engine.url for engine in engines), key, MODEL)
        started = [(front, stack.enter_context(front.start(place))) for front in fronts]
        comparison = Comparison(place, seconds)
        asyncio.run(play(comparison, started, loads, turns))
    return comparison


def main() -> int:
    parser = argparse.ArgumentParser(description="The same plan on real engines, alone and through gateways")
    parser.add_argument("fronts", nargs="*", metavar="FRONT", help=f"of {', '.join(each.name for each in FRONTS)}")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each turn")
    parser.add_argument("--loads", default="0.6,2", help="shares of the engines' capacity")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    loads = [float(each) for each in options.loads.split(",")]
    fronts = chosen(options.fronts)
    if not fronts:
        _say("no such front")
        return 1
    found = run(fronts, loads, options.turns, options.seconds)
    rows = [(load, front.name, plain(found.figures(load, front.name))) for load in loads for front in fronts]
    if options.json:
        named = [{"load": load, "front": front, **row} for load, front, row in rows]
        print(json.dumps({"capacity_per_s": found.capacity_per_s, "rows": named}, indent=1))
    else:
        print(table(rows))
        print("\n".join(f"{load:g} x {front}: {_codes(row['codes'])}" for load, front, row in rows if row["codes"]))
        print("\n".join(f"{front.name}: {front.about}" for front in fronts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
