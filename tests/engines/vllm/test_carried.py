from __future__ import annotations

from dataclasses import asdict, replace

from tidegate.engines.vllm.carried import TOTALS, Carrier, taken
from tidegate.engines.vllm.ledger import Figures

FIGURES = Figures(
    pool_blocks=80,
    held_blocks=40,
    reserved_blocks=70,
    peak_reserved_blocks=79,
    overtakes=5,
    preemptions=1,
    pauses=2,
    paused_steps=6,
    leaked=0,
)


def test_what_is_put_in_is_taken_out() -> None:
    stages = {"in_progress": 3}
    Carrier().put(FIGURES, stages)
    assert taken(stages) == asdict(FIGURES)


def test_it_disturbs_no_sum_over_the_stages() -> None:
    stages = {"in_progress": 0}
    Carrier().put(FIGURES, stages)
    assert not any(stages.values())


def test_totals_are_sent_as_what_was_added() -> None:
    carrier = Carrier()
    carrier.put(FIGURES, {})
    stages: dict[str, int] = {}
    carrier.put(replace(FIGURES, overtakes=7, held_blocks=41), stages)
    found = taken(stages)
    assert found is not None
    assert {name: found[name] for name in TOTALS} == {"overtakes": 2, "preemptions": 0, "pauses": 0, "paused_steps": 0}
    assert found["held_blocks"] == 41


def test_an_engine_without_the_plugin_carries_nothing() -> None:
    assert taken({"in_progress": 3}) is None
