"""Faults on real processes, in short: what bench/faults.py measures at length, with the targets asserted.

``pytest -m live -s tests/live/test_faults.py`` prints the figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fault_runs.cases import CASES
from bench.fault_runs.figures import DEFINITIONS, Figures, table
from bench.fault_runs.load import COMPLETIONS, Load
from bench.fault_runs.run import Plan, run

pytestmark = pytest.mark.live

SHORT = Plan(before_s=2.0, fault_s=5.0, after_s=7.0)
CONTINUED = Plan(before_s=2.0, fault_s=4.0, after_s=7.0, load=Load(path=COMPLETIONS), continuation="text")


def played(fault: str, plan: Plan, replicas: int, folder: Path) -> Figures:
    figures, _ = run(CASES[fault], plan, replicas, folder)
    print(f"\n{table([figures], {})}\n{DEFINITIONS}")  # noqa: T201 - the figures are what somebody runs this for
    assert (figures.permit_leaks, figures.left_open, figures.data_process_ends) == (0, 0, 0)
    assert figures.ends.get("unanswered", 0) == 0
    assert figures.ends.get("broken", 0) == 0
    return figures


def test_a_killed_replica_costs_no_client_an_answer_where_streams_are_continued(tmp_path: Path) -> None:
    figures = played("kill", CONTINUED, 2, tmp_path)
    assert figures.client_errors <= 1
    assert figures.avoided_s is not None
    assert figures.avoided_s <= 2.0
    assert figures.back_s is not None
    assert figures.back_s <= 5.0


def test_a_replica_that_answers_500_is_avoided_and_used_again(tmp_path: Path) -> None:
    figures = played("error-500", SHORT, 2, tmp_path)
    assert figures.client_errors <= 1
    assert figures.avoided_s is not None
    assert figures.avoided_s <= 2.0
    assert figures.back_s is not None
    assert figures.back_s <= 5.0


def test_with_one_replica_requests_succeed_again_as_soon_as_it_does(tmp_path: Path) -> None:
    figures = played("error-500", Plan(before_s=2.0, fault_s=3.0, after_s=4.0, load=Load(rate=15.0)), 1, tmp_path)
    assert figures.worked_again_s is not None
    assert figures.worked_again_s <= 0.5
