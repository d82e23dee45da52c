"""Two targets that met the same requests in turns: how much quicker is one, and is that more than chance?

Each turn of one is paired with the same turn of the other, and gives one ratio: what slows both (another process on
the machine, the hour) falls out. The interval is a percentile bootstrap over turns (Efron 1979), not over requests:
requests of one turn wait in one queue and are not independent, so that an interval over them would be too narrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from tidegate.load.figure_text import ratio_text
from tidegate.load.played import Played
from tidegate.load.sample import Sample
from tidegate.simulate.quantile import quantile

LEAST_TURNS = 6
"""Of fewer there is no interval: 95 % of what can be drawn from five values reaches from end to end."""
DRAWS = 2000
LEAST_ANSWERS = 10
"""In each turn; else it has no median worth the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Of the second target to the first, for one figure in one phase. Below 1: the second's is smaller."""

    phase: str
    figure: str
    ratio: float
    """Median over the turns."""
    low: float | None
    """95 % interval; None: unavailable at this number of turns."""
    high: float | None
    turns: int

    @property
    def is_clear(self) -> bool:
        """The interval does not hold 1: the difference is not chance."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high

    @property
    def text(self) -> str:
        if self.low is None or self.high is None:
            return f"{ratio_text(self.ratio)} (interval unavailable at {self.turns} turns, {LEAST_TURNS} are needed)"
        said = "" if self.is_clear else "; may be chance"
        return f"{ratio_text(self.ratio)} ({ratio_text(self.low)} to {ratio_text(self.high)}{said})"


def _latency(share: float, of: Callable[[Sample], float | None]) -> Callable[[Played], float | None]:
    def measured(turn: Played) -> float | None:
        values = sorted(
            value for sample in turn.samples if sample.is_answered and (value := of(sample)) is not None and value > 0
        )
        return quantile(values, share) if len(values) >= LEAST_ANSWERS else None

    return measured


def _ttft(sample: Sample) -> float | None:
    return sample.ttft_s if sample.is_stream and sample.first_at else None


def _answers(turn: Played) -> float | None:
    length_s = turn.sending_s or turn.ended_s - turn.began_s
    end_s = turn.began_s + length_s
    count = sum(sample.is_answered and sample.ended_at <= end_s for sample in turn.samples)
    return count / length_s if count and length_s > 0 else None


COMPARED: dict[str, Callable[[Played], float | None]] = {
    "E2E P50": _latency(0.5, lambda sample: sample.scheduled_e2e_s),
    "E2E P95": _latency(0.95, lambda sample: sample.scheduled_e2e_s),
    "TTFT P50": _latency(0.5, _ttft),
    "TTFT P95": _latency(0.95, _ttft),
    "TPOT P50": _latency(0.5, lambda sample: sample.tpot_s),
    "answers/s": _answers,
}


def side_by_side(first: Sequence[Played], second: Sequence[Played], seed: int = 0) -> list[Ratio]:
    """Both in the order in which they were played; phases that only one has are left out."""
    ours, theirs = _by_phase(first), _by_phase(second)
    found = [
        _ratio(phase, figure, ours[phase], theirs[phase], seed)
        for phase in ours
        if phase in theirs
        for figure in COMPARED
    ]
    return [ratio for ratio in found if ratio is not None]


def _by_phase(played: Sequence[Played]) -> dict[str, list[Played]]:
    found: defaultdict[str, list[Played]] = defaultdict(list)
    for turn in played:
        found[turn.phase].append(turn)
    return dict(found)


def _ratio(phase: str, figure: str, first: Sequence[Played], second: Sequence[Played], seed: int) -> Ratio | None:
    """A turn that was played against one of them only, or brought nothing, has no pair."""
    of = COMPARED[figure]
    pairs = [(of(a), of(b)) for a, b in zip(first, second, strict=False)]
    ratios = [b / a for a, b in pairs if a is not None and b is not None]
    if not ratios:
        return None
    low, high = interval(ratios, Random(f"{seed}/{phase}/{figure}"))  # noqa: S311 - a bootstrap, not a secret
    return Ratio(phase=phase, figure=figure, ratio=median(ratios), low=low, high=high, turns=len(ratios))


def interval(values: Sequence[float], lot: Random) -> tuple[float, float] | tuple[None, None]:
    """95 % of the medians of as many values, drawn with putting back."""
    if len(values) < LEAST_TURNS:
        return None, None
    drawn = sorted(median(lot.choices(values, k=len(values))) for _ in range(DRAWS))
    return quantile(drawn, 0.025), quantile(drawn, 0.975)
