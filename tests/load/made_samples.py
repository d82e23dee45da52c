"""Samples and figures with known truths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tidegate.load.ask import Ask
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.gap_counts import GapCounts
from tidegate.load.measures import measure
from tidegate.load.phase import Kind, Phase
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.played import Played
from tidegate.load.sample import Sample


class NoSource:
    title = "nothing"

    def asks(self, seed: int) -> Iterator[Ask]:
        return iter(())

    def salted(self, salt: str) -> NoSource:
        return self


def phase(name: str = "p", *, kind: Kind = Kind.LOAD, duration_s: float = 100.0, **changes: Any) -> Phase:
    return Phase(name=name, kind=kind, source=NoSource(), duration_s=duration_s, **changes)


def plan(*phases: Phase, **changes: Any) -> Plan:
    return Plan(name="made", seed=1, phases=phases, **changes)


def sample(
    due_at: float = 0.0, e2e_s: float = 1.0, outcome: ClientOutcome = ClientOutcome.OK, **changes: Any
) -> Sample:
    """A stream: first token after a quarter of its time, four more until its end."""
    told: dict[str, Any] = {
        "phase": "p", "target": "t", "index": 0, "label": "chat", "sent_at": due_at, "ended_at": due_at + e2e_s,
        "first_at": due_at + e2e_s / 4, "last_at": due_at + e2e_s, "reads": 5, "chunks": 5, "worst_gap_s": 0.1,
        "prompt_tokens": 100, "output_tokens": 5, "is_counted": True, "status": 200,
    }  # fmt: skip
    if outcome not in {ClientOutcome.OK, ClientOutcome.DEGRADED}:
        told |= {"first_at": 0.0, "last_at": 0.0, "reads": 0, "chunks": 0, "output_tokens": 0, "prompt_tokens": 0}
    return Sample(due_at=due_at, outcome=outcome, **(told | changes))


def played(samples: Sequence[Sample], *, began_s: float = 0.0, sending_s: float = 100.0, **changes: Any) -> Played:
    told: dict[str, Any] = {"phase": "p", "target": "t", "gaps": GapCounts(), "token_gaps": GapCounts()}
    ended_s = max((each.ended_at for each in samples), default=began_s)
    return Played(began_s=began_s, ended_s=ended_s, sending_s=sending_s, samples=list(samples), **(told | changes))


def steadily(count: int, e2e_s: Callable[[int], float], duration_s: float = 100.0, **changes: Any) -> list[Sample]:
    """``count`` answers, evenly over the time."""
    return [sample(k * duration_s / count, e2e_s(k), index=k, **changes) for k in range(count)]


def figures_of(samples: Sequence[Sample], of: Phase | None = None, made: Plan | None = None) -> PhaseFigures:
    of = of or phase()
    return measure(of, [played(samples, sending_s=of.duration_s)], made or plan(of))
