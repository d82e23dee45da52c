from __future__ import annotations

from tidegate.lens.exposition import ParentFacts, render
from tidegate.policy.reading import Reading


def lines(facts: ParentFacts) -> list[str]:
    return [line for line in render(None, facts)[0].decode().splitlines() if line.startswith("tidegate_engine_")]


def test_what_an_engine_tells_stands_under_its_replica_and_the_rest_is_left_out() -> None:
    told = Reading(at=1.0, running=3, preemptions=41, prefix_asked_tokens=400, prefix_found_tokens=128, turned_away=14)
    silent = Reading(at=1.0)
    facts = ParentFacts(started_at=0.0, readings={"a": told, "b": silent}, engine_restarts={"a": 2})
    assert lines(facts) == [
        'tidegate_engine_running{replica="a"} 3.0',
        'tidegate_engine_preemptions_total{replica="a"} 41.0',
        'tidegate_engine_prefix_cache_query_tokens_total{replica="a"} 400.0',
        'tidegate_engine_prefix_cache_hit_tokens_total{replica="a"} 128.0',
        'tidegate_engine_turned_away_total{replica="a"} 14.0',
        'tidegate_engine_restarts_total{replica="a"} 2.0',
    ]
