"""One's own traffic on one's own engine: what ``tidegate simulate calibrate --out FILE`` wrote, under any policy.

The requests of the recorded run come at their times, or K times as fast, to N engines whose costs were fitted to that
run. Clients wait 60 s for the first token and call once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate.errors import ConfigError
from tidegate.simulate.arrivals import Arrival, client_bound, demands
from tidegate.simulate.calibrated_engine import EngineFile, Sent, read_engine_file
from tidegate.simulate.scenario import Scenario, Slo
from tidegate.simulate.visit import Demand

NAME = "own-engine"
SPEED = re.compile(r"(?P<speed>\d+(\.\d+)?)(x(?P<engines>\d+))?/(?P<file>.+)", re.ASCII)
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEngine:
    name: str
    file: EngineFile
    speed: float = 1.0
    engines: int = 1

    @classmethod
    def parse(cls, argument: str) -> OwnEngine:
        """``FILE``, ``K/FILE`` or ``KxN/FILE``. Raises ConfigError."""
        if not argument:
            raise ConfigError([f"{NAME}@FILE: name the file that `tidegate simulate calibrate RECORDS --out` wrote"])
        found = SPEED.fullmatch(argument)
        if found is None:
            return cls._of(argument, argument, 1.0, 1)
        return cls._of(argument, found["file"], float(found["speed"]), int(found["engines"] or 1))

    @classmethod
    def _of(cls, argument: str, path: str, speed: float, engines: int) -> OwnEngine:
        if speed <= 0 or engines < 1:
            raise ConfigError([f"{NAME}@{argument}: speed and engines must be above 0, such as {NAME}@1.5x2/{path}"])
        file = read_engine_file(Path(path))
        if not file.traffic:
            raise ConfigError([f"{path}: no traffic in it"])
        return cls(name=f"{NAME}@{argument}", file=file, speed=speed, engines=engines)

    def build(self, seed: int) -> Scenario:
        sent = sorted(self.file.traffic, key=lambda each: each.at)
        rows = [Arrival(each.at / self.speed, each.prompt_tokens, each.output_tokens, each.label) for each in sent]
        calls = demands(rows, seed, PATIENCE_S)
        engine = self.file.engine
        last_s = max(rows[-1].at, 1.0)
        return Scenario(
            name=self.name,
            engines=(engine.config,) * self.engines,
            demands=[_as_sent(call, each) for call, each in zip(calls, sent, strict=True)],
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=1,
            source=f"records {self.file.source}; step times fitted to them",
            notes={
                "rate_per_s": round(len(rows) / last_s, 2),
                "not_simulated_ms_per_request": round(engine.overhead_s * 1e3, 1),
            },
        )


def _as_sent(call: Demand, sent: Sent) -> Demand:
    """With the bound and the tenant of the records, where they have them."""
    return replace(
        call, max_tokens=sent.max_tokens or client_bound(sent.output_tokens), tenant=sent.tenant or call.tenant
    )
