"""The requests of a load run, sent again to a simulated engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from tidegate.engines.simulated import EngineEventKind, SimulatedEngine
from tidegate.simulate.calibrated_engine import CalibratedEngine
from tidegate.simulate.load_row import LoadRow
from tidegate.simulate.stretch import Stretch, stretches


@dataclass(slots=True)
class Replayed:
    """When a simulated request was sent and its tokens came; 0.0: never."""

    at: float = 0.0
    first_at: float = 0.0
    last_at: float = 0.0

    @property
    def ttft_s(self) -> float:
        return self.first_at - self.at

    @property
    def e2e_s(self) -> float:
        return self.last_at - self.at


class LoadReplay:
    """Of one run; each of its engines, and each stretch of it, is played on an idle engine of its own."""

    def __init__(self, rows: Sequence[LoadRow]) -> None:
        self.rows = rows
        self._stretches = stretches(rows)

    def on(self, engine: CalibratedEngine) -> list[Replayed]:
        """One for each row, in their order."""
        found = [Replayed() for _ in self.rows]
        for stretch in self._stretches:
            _Played(self.rows, stretch, engine, found).play()
        return found


class _Played:
    """One stretch on one engine."""

    def __init__(
        self, rows: Sequence[LoadRow], stretch: Stretch, engine: CalibratedEngine, found: list[Replayed]
    ) -> None:
        self._rows = rows
        self._stretch = stretch
        self._overhead_s = engine.overhead_s
        self._engine = SimulatedEngine(engine.config)
        self._found = found
        first = stretch.indices[: stretch.users] if stretch.users else stretch.indices
        self._waiting = list(reversed(stretch.indices[stretch.users :])) if stretch.users else []
        # (time, leaves, index): of one moment, who comes is before who goes.
        self._moments = [(rows[index].at + self._overhead_s, False, index) for index in first]
        self._moments += [(rows[index].last_at, True, index) for index in first if not rows[index].is_whole]
        heapify(self._moments)

    def play(self) -> None:
        engine = self._engine
        while True:
            due = engine.next_event_at()
            if self._moments and (due is None or self._moments[0][0] <= due):
                now, leaves, index = heappop(self._moments)
                self._note(now)
                if leaves:
                    engine.abort(index, now)
                else:
                    self._send(index, now)
            elif due is not None:
                self._note(due)
            else:
                return

    def _send(self, index: int, now: float) -> None:
        self._found[index].at = now - self._overhead_s
        row = self._rows[index]
        self._engine.submit(index, row.prompt_tokens, row.output_tokens, now)

    def _note(self, now: float) -> None:
        for event in self._engine.advance(now):
            if event.kind is EngineEventKind.FIRST_TOKEN:
                self._found[event.id].first_at = event.at
            elif event.kind is EngineEventKind.FINISHED:
                self._found[event.id].last_at = event.at
            if event.kind is not EngineEventKind.FIRST_TOKEN and self._waiting:
                again_at = event.at + self._stretch.pause_s + self._overhead_s
                heappush(self._moments, (max(again_at, now), False, self._waiting.pop()))


def replay(rows: Sequence[LoadRow], engine: CalibratedEngine) -> list[Replayed]:
    """One for each row, in their order."""
    return LoadReplay(rows).on(engine)
