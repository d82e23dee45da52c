"""The requests of a load run, sent again at the same times to a simulated engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.engines.simulated import EngineEventKind, SimulatedEngine
from tidegate.simulate.calibrated_engine import CalibratedEngine
from tidegate.simulate.load_row import LoadRow


@dataclass(slots=True)
class Replayed:
    """When the simulated engine's tokens came; 0.0: never."""

    first_at: float = 0.0
    last_at: float = 0.0


def replay(rows: Sequence[LoadRow], engine: CalibratedEngine) -> list[Replayed]:
    """One for each row, in their order; ``rows`` of several engines are played on as many, each on its own."""
    found = [Replayed() for _ in rows]
    by_engine: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        by_engine.setdefault(row.engine, []).append(index)
    for indices in by_engine.values():
        _play(rows, indices, engine, found)
    return found


def _play(rows: Sequence[LoadRow], indices: list[int], engine: CalibratedEngine, found: list[Replayed]) -> None:
    simulated = SimulatedEngine(engine.config)
    # (time, leaves, index): of one moment, who comes is before who goes.
    moments = [(rows[index].at + engine.overhead_s, False, index) for index in indices]
    moments += [(rows[index].last_at, True, index) for index in indices if not rows[index].is_whole]
    for now, leaves, index in sorted(moments):
        _note(simulated, now, found)
        if leaves:
            simulated.abort(index, now)
        else:
            simulated.submit(index, rows[index].prompt_tokens, rows[index].output_tokens, now)
    _note(simulated, float("inf"), found)


def _note(simulated: SimulatedEngine, now: float, found: list[Replayed]) -> None:
    for event in simulated.advance(now):
        if event.kind is EngineEventKind.FIRST_TOKEN:
            found[event.id].first_at = event.at
        elif event.kind is EngineEventKind.FINISHED:
            found[event.id].last_at = event.at
