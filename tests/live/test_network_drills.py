"""Two of the drills on networks, played really and in short: packets that are lost, and a replica that moves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tidegate.load.drills.catalogue import DRILLS, OWN_FAULTS
from tidegate.load.drills.drill_pace import SHORT
from tidegate.load.drills.drill_runner import DrillRunner
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.own_deployment import OwnDeployment

pytestmark = pytest.mark.live


async def _played(name: str, folder: Path) -> Findings:
    said: list[str] = []
    own = OwnDeployment(folder, 2, OWN_FAULTS, said.append)
    try:
        found = await DrillRunner(own, SHORT, 1, said.append).run(DRILLS[name])
    finally:
        await own.close()
    missed = [f"{verdict.bar}: {verdict.measured}" for verdict in found.verdicts if not verdict.passed]
    print(f"\n{name}: {found.figures}\n{found.notes}")  # noqa: T201 - the figures are what somebody runs this for
    assert (found.skipped, found.aborted, found.left_broken, missed) == ("", "", [], [])
    return found


def test_a_shaky_network_makes_clients_try_again_and_computes_and_charges_nothing_twice(tmp_path: Path) -> None:
    found = asyncio.run(_played("network-jitter", tmp_path))
    assert found.figures["calls_charged_twice"] == 0
    assert found.figures["tries_again"]


def test_a_replica_moves_and_no_client_notices(tmp_path: Path) -> None:
    found = asyncio.run(_played("migrate", tmp_path))
    assert found.errors == found.lost == 0
    assert found.figures["new_answers"]
