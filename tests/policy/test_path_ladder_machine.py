"""The same invariants where a lighter model, a standby and shorter answers stand in, and streams go on elsewhere."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis.stateful import invariant

from tests.policy.machine import replica_config
from tests.policy.test_path_machine import CONFIG, PathMachine
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.limits.per_model import ModelsConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.quota import QuotaConfig

LADDER = LadderConfig(light_model="b", standby="c")


class LadderMachine(PathMachine):
    more = (replica_config("c1", "c", sequences=2),)
    base: PathConfig = replace(
        CONFIG,
        ladder=LADDER,
        models=ModelsConfig(ladders={"b": LadderConfig(light_model="c", slow_count=1)}),
        quota=QuotaConfig(tokens_per_minute=60_000),
    )

    def __init__(self) -> None:
        super().__init__()
        self.events.insists = True

    @invariant()
    def every_rung_is_tried_once(self) -> None:
        for request in (*self.events.waiting.values(), *(request for request, _ in self.events.live)):
            record = self.events.path.find(request.id)
            assert len(set(record.rungs)) == len(record.rungs)
            assert (record.degraded is None) or record.degraded in record.rungs
            assert (request.upstream == record.model) or record.degraded in ("light_model", "standby")

    @invariant()
    def whoever_waits_stands_in_the_queue_of_who_is_to_serve_it(self) -> None:
        path = self.events.path
        standing = {
            ticket.id: name
            for name, upstream in path.upstreams.items()
            for line in (*upstream.queue.lines.values(), upstream.queue.giants)
            for ticket in line.tickets()
        }
        assert standing == {ticket: request.upstream for ticket, request in self.events.waiting.items()}


LadderMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestLadderMachine = LadderMachine.TestCase
