"""How near a simulated run comes to the measured one: figures beside figures, and what is left between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from tidegate.simulate.least_squares import Residual
from tidegate.simulate.load_replay import Replayed
from tidegate.simulate.load_row import LoadRow
from tidegate.simulate.quantile import quantile

QUANTILES = (0.5, 0.95)
FITTED_QUANTILES = (0.5, 0.75, 0.95)
QUANTILE_WEIGHT = 0.3
LEAST_S = 1e-3
"""Added to both sides of a ratio: below a millisecond it is the client that is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """One quantile of one metric, of the requests of one phase."""

    phase: str
    metric: str
    """``ttft``, ``tpot`` or ``e2e``."""
    share: float
    count: int
    measured_s: float
    simulated_s: float

    @property
    def error(self) -> float:
        """Relative to what was measured; negative where simulation is too fast."""
        return self.simulated_s / self.measured_s - 1 if self.measured_s > 0 else 0.0


Pairs = dict[str, list[tuple[float, float]]]
"""By metric, measured and simulated seconds of each request."""


def pairs(rows: Sequence[LoadRow], played: Sequence[Replayed]) -> Pairs:
    """What the simulated engine never answered is left out: a pool that is too small shows in ``unanswered``."""
    found: Pairs = {"ttft": [], "tpot": [], "e2e": []}
    for row, again in zip(rows, played, strict=True):
        if not row.is_whole or again.last_at <= 0.0:
            continue
        found["e2e"].append((row.e2e_s, again.e2e_s))
        if row.is_stream:
            found["ttft"].append((row.ttft_s, again.ttft_s))
        tpot_s = row.tpot_s
        if tpot_s is not None:
            found["tpot"].append((tpot_s, (again.last_at - again.first_at) / (row.output_tokens - 1)))
    return found


def unanswered(rows: Sequence[LoadRow], played: Sequence[Replayed]) -> int:
    return sum(row.is_whole and again.last_at <= 0.0 for row, again in zip(rows, played, strict=True))


def likenesses(rows: Sequence[LoadRow], played: Sequence[Replayed]) -> list[Likeness]:
    """By phase, in the order in which phases appear; within it by metric and quantile."""
    found = []
    for phase in dict.fromkeys(row.phase for row in rows):
        chosen = [index for index, row in enumerate(rows) if row.phase == phase]
        both = pairs([rows[index] for index in chosen], [played[index] for index in chosen])
        for metric, values in both.items():
            found += [_likeness(phase, metric, share, values) for share in QUANTILES if values]
    return found


def _likeness(phase: str, metric: str, share: float, values: list[tuple[float, float]]) -> Likeness:
    measured_s, simulated_s = _quantiles(values, share)
    return Likeness(
        phase=phase,
        metric=metric,
        share=share,
        count=len(values),
        measured_s=measured_s,
        simulated_s=simulated_s,
    )


def residuals(rows: Sequence[LoadRow], played: Sequence[Replayed]) -> list[Residual]:
    """Logarithms of simulated by measured: of each request, and of the quantiles of all, which weigh a third in sum.
    None at all where the simulated engine left one unanswered.
    """
    if unanswered(rows, played):
        return []
    metrics = pairs(rows, played).values()
    alone = [_apart(*each) for values in metrics for each in values]
    together = [_apart(*_quantiles(values, share)) for values in metrics if values for share in FITTED_QUANTILES]
    return [(value, 1 / len(alone)) for value in alone] + [
        (value, QUANTILE_WEIGHT / len(together)) for value in together
    ]


def _quantiles(values: list[tuple[float, float]], share: float) -> tuple[float, float]:
    """Measured, simulated."""
    measured, simulated = (sorted(side) for side in zip(*values, strict=True))
    return quantile(measured, share), quantile(simulated, share)


def _apart(measured_s: float, simulated_s: float) -> float:
    return log((max(simulated_s, 0.0) + LEAST_S) / (max(measured_s, 0.0) + LEAST_S))
