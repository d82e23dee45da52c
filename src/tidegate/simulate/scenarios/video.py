"""Twelve video streams of 25 frames a second, each frame a request that is worthless after 200 ms (SPEC S0-132).

One engine with 60 sequences that takes 120 ms for a frame, whoever else it serves, with 12 % spread: steps of 4 ms
whose number is drawn per frame. 300 frames a second keep 36 of the 60 busy; 500 a second are what it carries, so that
``video-12@N`` with N streams is overload from 20 on. A frame is sent once, its client says that it is worthless after
200 ms, and leaves then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.engines.step_model import SimulatedConfig, StepModel
from tidegate.errors import ConfigError
from tidegate.simulate.arrivals import Arrival, demands
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.streams import stream

STEP_MS = 4.0
SERVICE_MS, SPREAD = 120.0, 0.12
FRAMES_PER_S = 25.0
WORTHLESS_AFTER_S = 0.2
FRAME_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Video:
    streams: int
    duration_s: float = 60.0

    @classmethod
    def parse(cls, argument: str) -> Video:
        if argument and not (argument.isdigit() and int(argument)):
            raise ConfigError([f"video-12@{argument}: expected a number of streams, such as video-12@24"])
        return cls(int(argument or 12))

    def build(self, seed: int) -> Scenario:
        rows = [row for each in range(self.streams) for row in self._frames(f"stream-{each}", seed)]
        drawn = demands(rows, seed, WORTHLESS_AFTER_S)
        return Scenario(
            name="video-12" if self.streams == 12 else f"video-12@{self.streams}",
            engines=(_engine(),),
            demands=[
                replace(each, tenant=each.label, label="frame", worthless_after_s=WORTHLESS_AFTER_S) for each in drawn
            ],
            slo=Slo(ttft_s=WORTHLESS_AFTER_S, tpot_s=0.1),
            tries=1,
            notes={"frames_per_s": self.streams * FRAMES_PER_S, "capacity_per_s": 60 / (SERVICE_MS / 1e3)},
        )

    def _frames(self, name: str, seed: int) -> list[Arrival]:
        """A stream starts somewhere in a frame's time and keeps its beat."""
        rng = stream(seed, f"video/{name}")
        starts_s = rng.uniform(0.0, 1 / FRAMES_PER_S)
        mean = SERVICE_MS / STEP_MS
        return [
            Arrival(starts_s + index / FRAMES_PER_S, FRAME_TOKENS, max(2, round(rng.gauss(mean, SPREAD * mean))), name)
            for index in range(int(self.duration_s * FRAMES_PER_S))
        ]


def _engine() -> SimulatedConfig:
    """Steps of one length: 60 sequences x their prompts fit into one."""
    return SimulatedConfig(
        step=StepModel.from_ms(STEP_MS, 0.0, 0.0, 0.0),
        kv_tokens=200_000,
        max_sequences=60,
        chunk_tokens=60 * FRAME_TOKENS,
    )
