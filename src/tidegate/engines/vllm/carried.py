"""How the figures get from vLLM's engine process to its /metrics.

The scheduler runs in EngineCore; /metrics is rendered by the API server. What crosses is vLLM's SchedulerStats,
decoded into exactly its own fields, so a field of ours would be dropped. Of its fields, the mapping of stage to number
is read by name only, so one more key in it, of value 0, disturbs nobody: neither sums nor log lines change.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, MutableMapping

from tidegate.engines.vllm.ledger import Figures

KEY = "tidegate "
"""Begins our key; the figures follow as JSON."""

TOTALS = ("overtakes", "preemptions", "pauses", "paused_steps")
"""Sent as what was added: each message goes to one of the API servers, whose counters are summed."""


class Carrier:
    """The sending side."""

    def __init__(self) -> None:
        self._sent = dict.fromkeys(TOTALS, 0)

    def put(self, figures: Figures, stages: MutableMapping[str, int]) -> None:
        values: dict[str, int] = dataclasses.asdict(figures)
        added = {name: values[name] - self._sent[name] for name in TOTALS}
        self._sent = {name: values[name] for name in TOTALS}
        stages[KEY + json.dumps({**values, **added})] = 0


def taken(stages: Mapping[str, int]) -> dict[str, int] | None:
    """What ``Carrier.put`` sent; None where nothing was."""
    for key in stages:
        if key.startswith(KEY):
            found: dict[str, int] = json.loads(key[len(KEY) :])
            return found
    return None
