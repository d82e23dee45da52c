"""An evening's essays: short and long ones come together, on engines that carry the short ones with ease (SPEC S0-102).

The source grades essays with a Qwen2-7B that is stable at 120 requests a second in its test, and loses 8 % in the
evening, when essays of 100 and of 2 000 characters are mixed. Here two H100 get 120 a second throughout, which is half
of what they carry of short ones; for two minutes a part of them is long, and 120 are then more than they carry.
A character is taken as a token, with 200 tokens of task before it; a short grade has 20 to 60 tokens, a long one 100 to
200. The part that is long is chosen so that ``native`` loses about what the source's service did.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engines.presets import preset
from tidegate.errors import ConfigError
from tidegate.simulate.arrivals import Arrival, Kind, Mix, demands, poisson
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.scenarios.lighter import LIGHT, lighter
from tidegate.simulate.streams import stream
from tidegate.simulate.visit import MODEL

SHORT = (250, 350), (20, 60)
LONG = (1700, 2300), (100, 200)
LONG_SHARE = 0.19
ENGINES = 2
CAPACITY_SAMPLE = 3000


@dataclass(frozen=True, slots=True)
class EssayPeak:
    long_share: float
    """Of the essays between ``peak_at_s`` and ``peak_at_s`` + ``peak_s``."""
    rate_per_s: float = 120.0
    peak_at_s: float = 30.0
    peak_s: float = 120.0
    duration_s: float = 180.0
    patience_s: float = 10.0

    @classmethod
    def parse(cls, argument: str) -> EssayPeak:
        share = positive_number("essay-peak", argument, LONG_SHARE)
        if share > 1:
            raise ConfigError([f"essay-peak@{argument}: the share of long essays is at most 1"])
        return cls(share)

    def build(self, seed: int) -> Scenario:
        engine = preset("H100", "qwen2-7b")
        peak = Burst(self.peak_at_s, self.peak_at_s + self.peak_s)
        capacity_per_s = ENGINES * saturated_rate(engine, _essays(self.long_share, [0.0] * CAPACITY_SAMPLE, 0))
        short_per_s = ENGINES * saturated_rate(engine, _essays(0.0, [0.0] * CAPACITY_SAMPLE, 0))
        return Scenario(
            name=f"essay-peak@{self.long_share:g}",
            engines=(engine,) * ENGINES + (lighter(engine),),
            models=(MODEL,) * ENGINES + (LIGHT,),
            light_models={MODEL: LIGHT},
            demands=demands(self._arrivals(peak, seed), seed, self.patience_s),
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
            burst=peak,
            notes={
                "rate_per_s": self.rate_per_s,
                "capacity_short_per_s": round(short_per_s, 1),
                "capacity_mixed_per_s": round(capacity_per_s, 1),
            },
        )

    def _arrivals(self, peak: Burst, seed: int) -> list[Arrival]:
        times = [*poisson(stream(seed, "arrivals"), self.rate_per_s, 0.0, self.duration_s)]
        mixed = _essays(self.long_share, times, seed)
        short = _essays(0.0, times, seed)
        return [
            long if peak.start_s <= long.at < peak.end_s else plain for long, plain in zip(mixed, short, strict=True)
        ]


def _essays(long_share: float, times: list[float], seed: int) -> list[Arrival]:
    kinds = (Kind("short", 1.0 - long_share, *SHORT), Kind("long", long_share, *LONG))
    return [*Mix(kinds, stream(seed, "lengths")).at(times)]
