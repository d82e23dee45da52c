"""What no policy can exceed: a clairvoyant that knows every request of the trace, and serves the smallest work first.

    work = in · (b + a ÷ chunk) + out · (a ÷ chunk + c + d · (in + out ÷ 2))
    time = (last arrival − first) + TTFT objective + TPOT objective · longest output            on every engine

with the step model's a (fixed), b (per prompt token), c (per sequence) and d (per token of context): every token takes
at least one chunk-th of a step, as in an engine that is never short of work. Work is fractional, deadlines other than
the end of the trace do not count, nothing waits: an upper bound in this model, and a loose one where load comes in
bursts. Requests are taken in order of

    ``bound``         work                  the most requests
    ``bound:tokens``  work per token        the most tokens
    ``bound:blind``   their random bits     what is left to somebody who does not see sizes

and answered at once, so that times mean nothing. No engine is simulated.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engines.step_model import SimulatedConfig
from tidegate.engines.step_run import SECONDS_PER_PS
from tidegate.simulate.front import ClientSide, WithoutLedger
from tidegate.simulate.scenario import Scenario
from tidegate.simulate.visit import Call, Demand

ORDERS = ("", "tokens", "blind")
FORMULA = (
    "bound: smallest work first over the whole trace until it fills it; work = in x (b + a / chunk) + out x (a / chunk "
    "+ c + d x (in + out / 2)) with the step model's a fixed, b per prompt token, c per sequence, d per token of "
    "context; time = last arrival - first + TTFT objective + TPOT objective x longest output, times engines. "
    "bound:tokens takes the least work per token first, bound:blind by lot. Its times mean nothing"
)


def work_s(engine: SimulatedConfig, prompt_tokens: int, output_tokens: int) -> float:
    """Seconds of a saturated engine."""
    step, share_ps = engine.step, engine.step.fixed_ps / engine.chunk_tokens
    prompt_ps = prompt_tokens * (step.prefill_ps + share_ps)
    context_tokens = prompt_tokens + output_tokens / 2
    output_ps = output_tokens * (share_ps + step.sequence_ps + step.context_ps * context_tokens)
    return (prompt_ps + output_ps) * SECONDS_PER_PS


def chosen(scenario: Scenario, order: str) -> set[int]:
    """Indices of the demands that the bound serves; of the last, any part counts as the whole."""
    demands = scenario.demands
    fleet_s = {demand.index: _fleet_s(scenario, demand) for demand in demands}
    keys: dict[str, Callable[[Demand], float]] = {
        "": lambda demand: fleet_s[demand.index],
        "tokens": lambda demand: fleet_s[demand.index] / (demand.prompt_tokens + demand.output_tokens),
        "blind": lambda demand: demand.draw,
    }
    left_s, found = _time_s(scenario), set()
    for demand in sorted(demands, key=keys[order]):
        if left_s <= 0:
            break
        left_s -= fleet_s[demand.index]
        found.add(demand.index)
    return found


def _fleet_s(scenario: Scenario, demand: Demand) -> float:
    """Seconds that all engines together take for it."""
    lengths = demand.prompt_tokens, demand.output_tokens
    return 1 / sum(1 / work_s(engine, *lengths) for engine in scenario.main_engines)


def _time_s(scenario: Scenario) -> float:
    times = [demand.at for demand in scenario.demands]
    longest = max(demand.output_tokens for demand in scenario.demands)
    ttft_s = max(demand.ttft_slo_s or scenario.slo.ttft_s for demand in scenario.demands)
    return max(times) - min(times) + ttft_s + scenario.slo.tpot_s * longest


class Bound(WithoutLedger):
    def __init__(self, scenario: Scenario, clients: ClientSide, order: str) -> None:
        self.refusals: dict[str, int] = {}
        self._clients = clients
        self._chosen = chosen(scenario, order)

    def open(self, call: Call) -> None:
        demand = call.visit.demand
        if demand.index in self._chosen:
            self._clients.answered(call, min(demand.output_tokens, demand.max_tokens))
        else:
            self.refusals["beyond"] = self.refusals.get("beyond", 0) + 1
            self._clients.refused(call, None)

    def leave(self, call: Call) -> None:
        """Nobody waits here."""
