"""Many tenants of very different size on four engines, and one that asks for fifty times as much as usual.

Who calls, how often, in which bursts and with which lengths comes from ServeGen's clients of one production model
(``client_traces``), scaled together to a share of the fleet's capacity. ``servegen@K``: that share, 0.9 unless given.
``/greedy``: the tenant whose rate is nearest to the mean sends 50 x its usual traffic from 60 s on; all others do
exactly what they do without. The report calls it ``average`` and them ``others``. Clients wait 20 s for a first token
and call twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tidegate.engines.presets import preset
from tidegate.errors import ConfigError
from tidegate.policy.line import OUTPUT_WEIGHT
from tidegate.simulate.arrivals import Arrival, demands
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.client_traces import TracedClient, load_clients
from tidegate.simulate.scenario import Burst, Scenario, Slo
from tidegate.simulate.scenarios.arguments import positive_number
from tidegate.simulate.streams import stream

ENGINES = 4
CAPACITY_SAMPLE = 4000
LONGEST_PROMPT_TOKENS = 16_000
"""Longer ones are cut: a client's rare giant would make its tenant's figures its own."""
GREED = 50.0


@dataclass(frozen=True, slots=True)
class ServeGen:
    load: float
    is_greedy: bool
    greed_at_s: float = 60.0
    duration_s: float = 300.0
    patience_s: float = 20.0

    @classmethod
    def parse(cls, argument: str) -> ServeGen:
        load, *words = argument.split("/")
        if words not in ([], ["greedy"]):
            raise ConfigError([f"servegen@{argument}: after the load, expected /greedy or nothing"])
        return cls(positive_number("servegen", load, 0.9), bool(words))

    def build(self, seed: int) -> Scenario:
        clients, source = load_clients(seed)
        engine = preset("A100", "llama-3-8b", chunk_tokens=512)
        capacity_per_s = ENGINES * saturated_rate(engine, self._sample(clients, seed))
        factor = self.load * capacity_per_s / sum(client.rate_per_s for client in clients)
        mean_per_s = sum(client.rate_per_s for client in clients) / len(clients)
        greedy = min(clients, key=lambda client: abs(client.rate_per_s - mean_per_s))
        rows = [row for client in clients for row in self._calls(client, factor, seed)]
        if self.is_greedy:
            rows += self._calls(greedy, factor * (GREED - 1), seed, "greed")
        return Scenario(
            name=f"servegen@{self.load:g}" + ("/greedy" if self.is_greedy else ""),
            engines=(engine,) * ENGINES,
            demands=[
                replace(each, tenant=each.label, label="average" if each.label == greedy.name else "others")
                for each in demands(rows, seed, self.patience_s)
            ],
            slo=Slo(ttft_s=2.0, tpot_s=0.1),
            tries=2,
            shares={client.name: client.rate_per_s * _work(client) for client in clients},
            burst=Burst(self.greed_at_s, self.duration_s) if self.is_greedy else None,
            source=source,
            notes={
                "capacity_per_s": round(capacity_per_s, 2),
                "rate_per_s": round(self.load * capacity_per_s, 2),
                "average_tenant": greedy.name,
            },
        )

    def _calls(self, client: TracedClient, factor: float, seed: int, purpose: str = "") -> list[Arrival]:
        """Labelled with the tenant. Those of greed begin later, and draw from a stream of their own."""
        rng = stream(seed, f"servegen/{client.name}/{purpose}")
        begins_s = self.greed_at_s if purpose else 0.0
        times = client.times(rng, factor, self.duration_s - begins_s)
        return [_arrival(client, rng, begins_s + time) for time in times]

    def _sample(self, clients: list[TracedClient], seed: int) -> list[Arrival]:
        rng = stream(seed, "servegen/capacity")
        rates = [client.rate_per_s for client in clients]
        return [_arrival(client, rng, 0.0) for client in rng.choices(clients, rates, k=CAPACITY_SAMPLE)]


def _work(client: TracedClient) -> float:
    """Tokens of its mean request, an output counted as two as fair queueing does."""
    (prompts, prompt_weights), (outputs, output_weights) = client.prompt, client.output
    prompt = sum(min(each, LONGEST_PROMPT_TOKENS) * w for each, w in zip(prompts, prompt_weights, strict=True))
    output = sum(each * w for each, w in zip(outputs, output_weights, strict=True))
    return prompt / sum(prompt_weights) + OUTPUT_WEIGHT * output / sum(output_weights)


def _arrival(client: TracedClient, rng: Random, at: float) -> Arrival:
    (prompt,), (output,) = (rng.choices(values, weights) for values, weights in (client.prompt, client.output))
    return Arrival(at, min(prompt, LONGEST_PROMPT_TOKENS), max(1, output), client.name)
