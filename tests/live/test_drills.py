"""Two drills on real engines behind the real gateway, as ``tidegate drill NAME --short`` plays them.

Quick enough for CI: two small models, a minute on two processors. ``tidegate drill all --short`` plays the rest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.load.drills.catalogue import DRILLS, OWN_FAULTS
from tidegate.load.drills.drill_page import word_of
from tidegate.load.drills.drill_session import DrillSession, SessionOptions
from tidegate.load.drills.findings import Findings

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Findings]:
    """``node-lost`` and ``gateway-killed``, one after the other on one deployment."""
    options = SessionOptions(is_short=True, folder=tmp_path_factory.mktemp("drills"), command="a test")
    said: list[str] = []
    session = DrillSession(options, OWN_FAULTS, said.append)
    results = session.play([DRILLS["node-lost"], DRILLS["gateway-killed"]])
    assert not session.is_interrupted, said
    return {each.drill: each for each in results.findings}


@pytest.mark.parametrize("name", ["node-lost", "gateway-killed"])
def test_a_drill_meets_its_bars_and_leaves_nothing_broken(played: dict[str, Findings], name: str) -> None:
    findings = played[name]
    missed = [f"{verdict.bar}: {verdict.measured}" for verdict in findings.verdicts if not verdict.passed]
    assert (findings.aborted, findings.left_broken, missed) == ("", [], [])
    assert word_of(findings) == "PASSED"


def test_a_lost_replica_comes_back_with_its_model_and_an_empty_cache(played: dict[str, Findings]) -> None:
    (check,) = played["node-lost"].restarts
    assert check.is_loaded
    assert check.cached_before
    assert (check.cached_first or 0) < check.cached_before
    assert check.cached_second == check.cached_before


def test_an_engine_survives_the_gateway_that_is_killed(played: dict[str, Findings]) -> None:
    assert played["gateway-killed"].figures["engines_restarted"] == 0.0
    assert played["gateway-killed"].figures["left_behind"] == 0.0


def test_a_drill_that_hurts_more_than_it_may_is_ended_and_put_back(tmp_path: Path) -> None:
    options = SessionOptions(is_short=True, folder=tmp_path, rate_per_s=2.0, command="a test")
    made = replace(DRILLS["gateway-killed"], expected_error_share=0.05)
    (findings,) = DrillSession(options, OWN_FAULTS, lambda _: None).play([made]).findings
    assert "more than the 5% that this drill may cost" in findings.aborted
    assert findings.left_broken == []
    assert findings.passed is False
