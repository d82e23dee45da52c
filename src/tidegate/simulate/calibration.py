"""Fits the step model of a simulated engine to a load run of a real one.

Least squares give first costs (``step_fit``). Then the measured arrivals are played again, and the costs are moved
until TTFT, TPOT and E2E of the simulated requests are as near to the measured ones as they get (``likeness``,
``least_squares``). Nothing is drawn: equal records give equal engines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tidegate.engines.step_model import SimulatedConfig, StepModel
from tidegate.errors import ConfigError
from tidegate.simulate.calibrated_engine import CalibratedEngine
from tidegate.simulate.least_squares import Point, Residual, descend, loss
from tidegate.simulate.likeness import residuals
from tidegate.simulate.load_replay import LoadReplay, Replayed
from tidegate.simulate.load_row import LoadRow
from tidegate.simulate.step_fit import first_costs

LEAST_ROWS = 20
"""Of whole streamed answers. Six costs cannot be told apart by fewer."""
MOST_ROWS = 2000
"""Enough for a fit: all are played again at each try, and more make it slow and no better."""
CHUNKS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
BLOCK_TOKENS = 16
REFINED = 2
"""How many beginnings (chunk, sequences and first costs) are searched to the end: the best of all."""
FIXED, PREFILL, SEQUENCE, CONTEXT, QUADRATIC, OVERHEAD = range(6)
ALWAYS = frozenset({FIXED, PREFILL, SEQUENCE})
MORE = tuple(map(frozenset, ((), (CONTEXT,), (QUADRATIC,), (OVERHEAD,), (CONTEXT, QUADRATIC, OVERHEAD))))
"""What may be fitted beside them."""
WORTH = 0.05
"""Of the loss: costs that save less each are left at 0."""
SCALE_S = 1e-4
LEAST_STEP_MS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is known of the engine; None: it is found by trying."""

    max_sequences: int | None = None
    chunk_tokens: int | None = None
    context_tokens: int | None = None
    kv_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    engine: CalibratedEngine
    loss: float
    """``least_squares.loss`` of what is left on the rows that were fitted, and a little more for each optional cost."""
    rows: int
    """So many were compared."""
    tries: int
    """Times that the run was played again."""


def calibrate(rows: Sequence[LoadRow], fitted: Collection[int], sizes: Sizes) -> Calibration:
    """Fit to the rows whose indices are in ``fitted``; the others load the engine, and their times are not looked at.

    ``rows`` stand in order of ``at``. Raises ConfigError where there are too few.
    """
    chosen = [rows[index] for index in fitted if rows[index].is_whole and rows[index].is_stream]
    if len(chosen) < LEAST_ROWS:
        raise ConfigError(
            [f"{len(chosen)} whole streamed answers to fit to: at least {LEAST_ROWS} are needed; run for longer"]
        )
    return _Search(rows, sorted(fitted), sizes).run()


class _Search:
    def __init__(self, rows: Sequence[LoadRow], compared: list[int], sizes: Sizes) -> None:
        self._rows = rows
        self._replay = LoadReplay(rows)
        self._sizes = sizes
        self._compared = compared
        self._tries = 0

    def run(self) -> Calibration:
        firsts = sorted(
            (loss(self._residuals(costs, *pair)), pair, costs)
            for pair in self._pairs()
            for costs in self._first_costs(*pair)
        )
        value, pair, point = min(self._refined(pair, costs) for _, pair, costs in firsts[:REFINED])
        return Calibration(engine=self._engine(point, *pair), loss=value, rows=len(self._compared), tries=self._tries)

    def _refined(self, pair: tuple[int, int], costs: Point) -> tuple[float, tuple[int, int], Point]:
        """The costs that every engine has, and others as far as the fit gets better by them: what explains next to
        nothing would only explain the machine's noise."""
        scales = _scales(costs)
        found = []
        for more in MORE:
            free = sorted(ALWAYS | more)
            start = tuple(cost if axis in free else 0.0 for axis, cost in enumerate(costs))
            point, value = descend(self._function(pair), start, scales, free)
            found.append((value * (1 + WORTH * len(more)), pair, point))
        return min(found)

    def _function(self, pair: tuple[int, int]) -> Callable[[Point], list[Residual]]:
        return lambda point: self._residuals(point, *pair)

    def _pairs(self) -> list[tuple[int, int]]:
        """Sequences and chunk tokens to try."""
        known, chunk = self._sizes.max_sequences, self._sizes.chunk_tokens
        most = most_at_once(self._rows)
        sequences = [known] if known else [each for each in SEQUENCES if each < 2 * most]
        chunks = [chunk] if chunk else CHUNKS
        pairs = [(each, tokens) for each in sequences for tokens in chunks if tokens >= each]
        return pairs or [(sequences[0], max(sequences[0], chunks[0]))]

    def _first_costs(self, max_sequences: int, chunk_tokens: int) -> list[Point]:
        by_engine: dict[str, list[LoadRow]] = {}
        for index in self._compared:
            row = self._rows[index]
            if row.is_stream and row.is_whole:
                by_engine.setdefault(row.engine, []).append(row)
        return first_costs(max(by_engine.values(), key=len), max_sequences, chunk_tokens)

    def _residuals(self, point: Point, max_sequences: int, chunk_tokens: int) -> list[Residual]:
        self._tries += 1
        played = self._replay.on(self._engine(point, max_sequences, chunk_tokens))
        return residuals(*_of(self._rows, played, self._compared))

    def _engine(self, point: Point, max_sequences: int, chunk_tokens: int) -> CalibratedEngine:
        fixed, prefill, sequence, context, quadratic, overhead_s = point
        step = StepModel.from_ms(
            max(LEAST_STEP_MS, fixed * 1e3), prefill * 1e3, sequence * 1e3, context * 1e3, quadratic * 1e3
        )
        config = SimulatedConfig(
            step=replace(step, quadratic_from_tokens=0),
            kv_tokens=self._kv_tokens(max_sequences),
            max_sequences=max_sequences,
            chunk_tokens=chunk_tokens,
            context_tokens=self._sizes.context_tokens,
        )
        return CalibratedEngine(config=config, overhead_s=overhead_s)

    def _kv_tokens(self, max_sequences: int) -> int:
        """Enough for all, unless the pool is known: a pool that runs short shows in nothing else that is fitted."""
        if self._sizes.kv_tokens is not None:
            return self._sizes.kv_tokens
        longest = max(row.prompt_tokens + max(row.output_tokens, row.max_tokens) for row in self._rows)
        return max_sequences * ((self._sizes.context_tokens or longest) + BLOCK_TOKENS)


def _of(
    rows: Sequence[LoadRow], played: Sequence[Replayed], indices: Sequence[int]
) -> tuple[list[LoadRow], list[Replayed]]:
    return [rows[index] for index in indices], [played[index] for index in indices]


def _scales(costs: Point) -> Point:
    """A hundredth of a step for what stands per step or sequence; what stands per token is smaller by lengths."""
    step_s = max(costs[0] + costs[2], SCALE_S)
    return (step_s / 20, step_s / 2000, step_s / 20, step_s / 20_000, step_s / 2_000_000, step_s / 20)


def most_at_once(rows: Sequence[LoadRow]) -> int:
    """Requests that were under way at one time on one engine, at most."""
    most = 0
    for engine in {row.engine for row in rows}:
        mine = [row for row in rows if row.engine == engine]
        changes = sorted([(row.at, 1) for row in mine] + [(row.last_at, -1) for row in mine])
        running = 0
        for _, change in changes:
            running += change
            most = max(most, running)
    return most
