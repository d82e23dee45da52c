"""What the drills themselves count."""

from __future__ import annotations

import pytest

from tests.load.drills.made_findings import findings
from tests.load.made_samples import sample
from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.drills.affordable_rate import rated
from tidegate.load.drills.burst_spike import dishonest_sheds, told_of
from tidegate.load.drills.catalogue import DRILLS, OWN_FAULTS
from tidegate.load.drills.drill_pace import Pace
from tidegate.load.drills.drill_runner import charged_twice, fill
from tidegate.load.drills.engine_freeze import beyond_probes
from tidegate.load.drills.gateway_killed import lost_beyond
from tidegate.load.drills.own_deployment import is_well, waits_for_requests
from tidegate.load.drills.several_restarts import busiest_share, most_over_limit, wave_size
from tidegate.load.drills.steady_load import SteadyLoad

BROKEN, TIMEOUT, UNSENT = ClientOutcome.BROKEN, ClientOutcome.TIMEOUT, ClientOutcome.UNSENT


def test_the_share_of_the_busiest_is_of_answers_whose_replica_is_known() -> None:
    assert busiest_share(["a", "a", "b", "", "c"]) == 0.5
    assert busiest_share([""]) is None


def test_a_replica_above_its_limit_is_seen_in_any_view() -> None:
    calm = {"replicas": {"a": {"in_flight": 3, "limit": 4.0}, "b": {"in_flight": 0, "limit": None}}}
    flooded = {"replicas": {"a": {"in_flight": 7, "limit": 4.0}}}
    assert most_over_limit([calm]) == 0.0
    assert most_over_limit([calm, flooded]) == 3.0
    assert most_over_limit([]) is None


@pytest.mark.parametrize(("peak_per_s", "size"), [(None, 6), (1.0, 6), (8.0, 16), (80.0, 24)])
def test_a_wave_is_two_seconds_of_work(peak_per_s: float | None, size: int) -> None:
    assert wave_size(peak_per_s, 3) == size


def test_a_request_under_way_or_sent_while_the_gateway_was_away_is_explained() -> None:
    outage = (10.0, 12.0)
    explained = [sample(9.5, 0.6, BROKEN), sample(11.0, 0.1, BROKEN), sample(12.3, 0.1, BROKEN)]
    beyond = [sample(9.0, 0.5, BROKEN), sample(13.0, 0.1, BROKEN)]
    assert lost_beyond([*explained, *beyond, sample(14.0)], (outage,)) == beyond


def test_probes_of_a_breaker_are_no_failures_of_a_freeze() -> None:
    failed = [sample(10.0 + second, 0.1, BROKEN) for second in range(4)]
    assert beyond_probes([sample(9.0), *failed], 7.0) == 1.0
    assert beyond_probes([sample(9.0), *failed[:1]], 2.0) == 0.0
    assert beyond_probes([], 2.0) is None


def test_refusals_without_a_time_to_come_back_are_dishonest() -> None:
    honest, silent, fine = (
        {"status": status, "retry_after_s": after_s} for status, after_s in ((429, 2.0), (503, 0.0), (200, 0.0))
    )
    assert dishonest_sheds([honest, silent, fine]) == 1.0
    assert dishonest_sheds([honest, fine]) == 0.0
    assert dishonest_sheds([]) is None


def test_a_spike_is_told_by_how_its_requests_ended() -> None:
    told = told_of(2.0, 6.0, [sample(), sample(), sample(outcome=ClientOutcome.SHED, code="queue_full")])
    assert told == "spike of 2 x the peak (6.0 requests/s): 2 ok, 1 shed queue_full"


def test_requests_are_counted_from_the_fault_on() -> None:
    found = findings(broken_at=10.0, healed_at=20.0, ended_at=30.0, baseline_p95_s=1.0, figures={"running": 1.0})
    early, under_way = sample(2.0), sample(9.5, 1.0, BROKEN)
    during = [sample(12.0, replica="b"), sample(13.0, 1.0, TIMEOUT), sample(14.0, 4.0, replica="b")]
    fill(found, [early, under_way, *during, sample(25.0, replica="a"), sample(29.0, 0.0, UNSENT)])
    assert (found.due, found.lost, found.late) == (5, 2, 1)
    assert found.outcomes == {"ok": 3, "broken": 1, "timeout": 1}
    assert found.by_replica == {"b": 2}
    assert found.figures["lost_beyond"] == 0.0
    assert (found.detected_s, found.recovered_s) == (3.0, 0.0)


def test_of_a_drill_that_broke_nothing_nothing_is_counted_as_hit() -> None:
    found = findings(ended_at=30.0)
    fill(found, [sample(2.0), sample(5.0, 1.0, BROKEN)])
    assert (found.due, found.lost, found.recovered_s) == (0, 0, None)


def test_a_request_that_was_charged_twice_is_found_by_its_id() -> None:
    rows = [
        {"request_id": name, "outcome": outcome, "reuse": reuse}
        for name, outcome, reuse in (
            ("made-1", "ok", ""),
            ("made-1", "ok", ""),
            ("made-2", "ok", ""),
            ("made-2", "ok", "replayed"),
            ("made-3", "cut", ""),
            ("made-3", "ok", ""),
            ("other-1", "ok", ""),
            ("other-1", "ok", ""),
        )
    ]
    assert charged_twice(rows, "made-") == 1
    assert charged_twice([], "made-") is None


@pytest.mark.parametrize(("peak_per_s", "rate_per_s"), [(10.0, 2.0), (0.5, 0.5), (1000.0, 5.0)])
def test_the_steady_load_leaves_room_for_one_replica_less(peak_per_s: float, rate_per_s: float) -> None:
    assert rated(Pace(), peak_per_s, 2).rate_per_s == rate_per_s


def test_one_replica_has_none_to_spare() -> None:
    assert rated(Pace(), 10.0, 1).rate_per_s == 4.0


def test_a_deployment_is_well_when_all_serve_and_nothing_is_under_way() -> None:
    up = {"ready": True, "breaker": "closed"}
    assert is_well({"open_requests": 0, "replicas": {"a": up, "b": up}}, 2)
    assert not is_well({"open_requests": 0, "replicas": {"a": up}}, 2)
    assert not is_well({"open_requests": 0, "replicas": {"a": up, "b": {**up, "breaker": "open"}}}, 2)
    assert not is_well({"open_requests": 1, "replicas": {"a": up, "b": up}}, 2)
    assert not is_well(None, 2)


def test_only_what_is_up_and_kept_out_waits_for_requests() -> None:
    up, out = {"ready": True, "breaker": "closed"}, {"ready": True, "breaker": "open"}
    assert waits_for_requests({"open_requests": 0, "replicas": {"a": up, "b": out}})
    assert not waits_for_requests({"open_requests": 1, "replicas": {"a": up, "b": out}})
    assert not waits_for_requests({"open_requests": 0, "replicas": {"a": up, "b": {**out, "ready": False}}})
    assert not waits_for_requests(None)


def test_equal_seeds_give_equal_asks_and_every_id_is_its_own() -> None:
    load = SteadyLoad(name="made", rate_per_s=2.0, pace=Pace(), count=20)
    first, again = list(load.asks(7)), list(load.asks(7))
    assert first == again
    assert len({each.extra["request_id"] for each in first}) == 20
    assert [each.due_s for each in first[:3]] == [0.0, 0.5, 1.0]
    assert {each.is_stream for each in first} == {True, False}


def test_every_drill_has_bars_and_the_own_deployment_knows_its_faults() -> None:
    for name, drill in DRILLS.items():
        assert drill.bars, name
        assert drill.question.endswith("?"), name
        assert set(drill.faults) <= set(OWN_FAULTS), name
        assert all(bar.most is not None or bar.least is not None for bar in drill.bars), name
