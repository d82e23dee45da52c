from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.load.made_samples import figures_of, phase, steadily
from tidegate.errors import ConfigError
from tidegate.load.map_entry import MapEntry, results_of
from tidegate.load.parameter_map import ParameterMap, compare
from tidegate.load.phase import Kind
from tidegate.load.upgrade_gate import upgrade_verdicts
from tidegate.load.wish import read_wish


def entry(max_requests: int = 64, answered_per_s: float = 5.0, p99_s: float = 2.0, **changes: Any) -> MapEntry:
    told: dict[str, Any] = {
        "date": "2026-11-30T10:00:00+00:00",
        "model": "chat",
        "card": "H200",
        "engine": "vllm",
        "version": "0.32",
        "workload": "rag-3k",
        "params": {"shaping": {"queue": {"max_requests": max_requests}}},
        "results": {
            "single": {"answered_per_s": 1.0, "error_rate": 0.0},
            "soak": {"answered_per_s": answered_per_s, "scheduled_e2e.p99": p99_s, "error_rate": 0.0},
        },
    }
    return MapEntry(**(told | changes))


def test_rows_come_back_as_they_were_recorded(tmp_path: Path) -> None:
    kept = ParameterMap(tmp_path / "folder" / "map.jsonl")
    assert kept.rows() == []
    first, second = kept.record(entry()), kept.record(entry(128))
    assert kept.rows() == [first, second]
    assert len({first.id, second.id}) == 2
    assert kept.row(first.id[:6]) == first


def test_rows_are_looked_up_by_what_they_are_of_and_by_parameters(tmp_path: Path) -> None:
    kept = ParameterMap(tmp_path / "map.jsonl")
    kept.record(entry(64))
    kept.record(entry(128, card="A10", model="chat-lite"))
    assert len(kept.rows({"model": "chat*"})) == 2
    assert [row.card for row in kept.rows({"card": "A10"})] == ["A10"]
    assert [row.card for row in kept.rows({"shaping.queue.max_requests": "64"})] == ["H200"]
    assert kept.rows({"shaping.queue.nothing": "*"}) == []


def test_broken_lines_are_all_told_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "map.jsonl"
    ParameterMap(path).record(entry())
    path.write_bytes(path.read_bytes() + b"{}\n\xff\xfe\n")
    with pytest.raises(ConfigError) as raised:
        ParameterMap(path).rows()
    assert [problem.split(" ")[0] for problem in raised.value.problems] == [f"{path}:2:1:", f"{path}:3:1:"]


def test_an_id_that_is_none_or_several_is_refused(tmp_path: Path) -> None:
    kept = ParameterMap(tmp_path / "map.jsonl")
    ids = [kept.record(entry(number)).id for number in range(40)]
    assert len(set(ids)) == 40
    with pytest.raises(ConfigError, match="no row begins"):
        kept.row("zzz")
    with pytest.raises(ConfigError, match="several rows begin"):
        kept.row("")


def test_rows_that_are_recorded_at_once_are_all_kept(tmp_path: Path) -> None:
    kept = ParameterMap(tmp_path / "map.jsonl")
    threads = [threading.Thread(target=kept.record, args=(entry(number, note="x" * 9000),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept.rows()) == 8


def test_a_comparison_tells_what_changed_and_what_came_of_it() -> None:
    after = entry(32, 6.0, 1.0, version="0.33")
    after.params["tail"] = {"enabled": True}
    found = compare(entry(), after)
    assert found.params == {"shaping.queue.max_requests": (64, 32), "tail.enabled": (None, True)}
    assert found.about == {"version": ("0.32", "0.33")}
    assert found.figures["soak: scheduled_e2e.p99"] == (2.0, 1.0)
    assert found.figures["single: answered_per_s"] == (1.0, 1.0)


def test_the_best_row_within_its_bounds_is_suggested_first(tmp_path: Path) -> None:
    kept = ParameterMap(tmp_path / "map.jsonl")
    slow = kept.record(entry(128, 9.0, 30.0))
    good = kept.record(entry(64, 5.0))
    worse = kept.record(entry(32, 4.0))
    invalid = kept.record(entry(16, 8.0, is_valid=False))
    bare = kept.record(entry(8, results={"soak": {"answered_per_s": 99.0}}))
    wish = read_wish("most answered_per_s; scheduled_e2e.p99 <= 10 s; error_rate <= 0.1 %")
    assert kept.suggest(wish) == [good, worse]
    assert wish.missed(slow) == "30.0 s: not scheduled_e2e.p99 <= 10.0 s"
    assert wish.missed(invalid) == "its run was invalid"
    assert wish.missed(bare) == "scheduled_e2e.p99 was not measured"
    assert kept.suggest(read_wish("least scheduled_e2e.p99; answered_per_s >= 4.5"))[0] == good
    assert (
        kept.suggest(read_wish("most answered_per_s"), {"card": "H200"}, "single")[0].value("answered_per_s", "single")
        == 1
    )


def test_of_equal_rows_the_latest_is_suggested(tmp_path: Path) -> None:
    kept = ParameterMap(tmp_path / "map.jsonl")
    kept.record(entry())
    later = kept.record(entry(65, date="2026-12-01T10:00:00+00:00"))
    assert kept.suggest(read_wish("least scheduled_e2e.p99"))[0] == later


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["must begin with most"]),
        ("fastest", ["must begin with most"]),
        ("most answered_per_sec", ['did you mean "answered_per_s"']),
        ("best x; e2e.p98 <= 3; e2e.p99 < 3; e2e.p99 <= soon", ["must begin", "e2e.p98", "e2e.p99 < 3", "soon"]),
    ],
)
def test_every_mistake_of_an_objective_is_told_at_once(text: str, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        read_wish(text)
    assert len(raised.value.problems) == len(problems)
    assert all(part in told for part, told in zip(problems, raised.value.problems, strict=True))


def test_results_are_the_figures_of_every_phase() -> None:
    found = results_of([figures_of(steadily(100, lambda k: 1.0), phase("soak", kind=Kind.SOAK, users=7))])
    assert found["soak"]["users"] == 7.0
    assert found["soak"]["scheduled_e2e.p99"] == pytest.approx(1.0)
    assert found["soak"]["error_rate"] == 0.0
    assert "recovered_in_s" not in found["soak"], "what was not measured is not there"


def test_an_upgrade_may_not_make_any_figure_worse() -> None:
    same = upgrade_verdicts(entry(), entry(answered_per_s=4.6, p99_s=2.1))
    assert {each.passed for each in same} == {True}
    worse = {each.name: each for each in upgrade_verdicts(entry(), entry(answered_per_s=4.4, p99_s=2.3))}
    assert worse["scheduled_e2e.p99 in soak"].passed is False
    assert worse["scheduled_e2e.p99 in soak"].measured == "2.30 s, was 2.00 s"
    assert worse["scheduled_e2e.p99 in soak"].bar == "<= 2.20 s"
    assert worse["answered_per_s in soak"].bar == ">= 4.50/s"
    assert worse["answered_per_s in soak"].passed is False
    assert worse["error_rate in soak"].passed is True


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (entry(workload="two-peaks"), "other loads"),
        (entry(is_valid=False), "invalid"),
        (entry(results={"burst": {"error_rate": 0.0}}), "no phase in common"),
    ],
)
def test_an_upgrade_that_cannot_be_compared_is_not_judged(after: MapEntry, why: str) -> None:
    found = upgrade_verdicts(entry(), after)
    assert [each.passed for each in found] == [None]
    assert why in found[0].why
