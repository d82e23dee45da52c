"""A service that runs: broken and put back by commands, and never left broken without a note."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import EngineError
from tidegate.load.drills.broken_journal import BrokenJournal
from tidegate.load.drills.drill_sections import DeploymentSection
from tidegate.load.drills.given_deployment import GivenDeployment
from tidegate.load.drills.setup import Setup


class Given:
    """One replica, which is up while a file is there."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.up = folder / "up"
        self.up.touch()
        self.said: list[str] = []
        self.journal = BrokenJournal(folder / "broken.json")
        commands = {"break": f"rm {self.up}", "restore": f"touch {self.up}", "status": f"test -e {self.up}"}
        told = {
            "url": "http://gate.example/v1",
            "model": "chat",
            "allow": ["gate.example"],
            "command_within_s": 0.3,
            "replicas": [{"name": "a", "faults": {"node-lost": commands}}, {"name": "b"}],
            "faults": {"cut": {"break": "exit 3", "restore": "true", "status": "true"}},
        }
        section = DeploymentSection.model_validate(told | changes)
        self.deployment = GivenDeployment(section, self.journal, self.said.append)


def test_what_is_broken_is_noted_until_it_serves_again(tmp_path: Path) -> None:
    given = Given(tmp_path)

    async def play() -> None:
        await given.deployment.break_("node-lost", "a")
        assert not given.up.exists()
        assert given.journal.entries() == [("node-lost", "a")]
        await given.deployment.restore("node-lost", "a")

    asyncio.run(play())
    assert given.up.exists()
    assert given.journal.entries() == []
    assert given.said == [f"given: node-lost: rm {given.up}", f"given: node-lost: touch {given.up}"]


def test_what_a_killed_run_left_broken_is_put_back_by_the_next(tmp_path: Path) -> None:
    given = Given(tmp_path)
    asyncio.run(given.deployment.break_("node-lost", "a"))
    asyncio.run(given.deployment.prepare(Setup()))
    assert given.up.exists()
    assert given.journal.entries() == []


def test_nothing_is_broken_while_a_replica_does_not_serve(tmp_path: Path) -> None:
    given = Given(tmp_path)
    given.up.unlink()
    with pytest.raises(EngineError, match="a does not serve before the drill"):
        asyncio.run(given.deployment.prepare(Setup()))


def test_a_command_that_fails_is_told_with_its_status(tmp_path: Path) -> None:
    given = Given(tmp_path)
    with pytest.raises(EngineError, match="ended with status 3: exit 3"):
        asyncio.run(given.deployment.break_("cut", None))
    assert given.journal.entries() == [("cut", None)]


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    commands = {"break": "sleep 60", "restore": "true", "status": "true"}
    given = Given(tmp_path, faults={"cut": commands}, command_within_s=0.05)
    with pytest.raises(EngineError, match="ended with status None"):
        asyncio.run(given.deployment.break_("cut", None))


def test_a_replica_that_does_not_come_back_is_told_and_stays_noted(tmp_path: Path) -> None:
    commands = {"break": "true", "restore": "true", "status": "false"}
    given = Given(tmp_path, replicas=[{"name": "a", "faults": {"restart": commands}}], command_within_s=0.05)
    with pytest.raises(EngineError, match="a does not serve again"):
        asyncio.run(given.deployment.restore("restart", "a"))


def test_only_what_the_file_has_commands_for_can_be_broken(tmp_path: Path) -> None:
    deployment = Given(tmp_path).deployment
    assert deployment.why_not("freeze") == "the drill file has no commands for it"
    assert (deployment.why_not("node-lost"), deployment.breakable("node-lost")) == ("", ["a"])
    assert (deployment.why_not("cut"), deployment.breakable("cut")) == ("", [])
    with pytest.raises(EngineError, match="no commands for freeze of a"):
        asyncio.run(deployment.break_("freeze", "a"))


def test_it_tells_what_is_known_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_KEY", "k")
    replica = {"name": "a", "url": "http://gate.example:8000/", "api_key_env": "ENGINE_KEY"}
    deployment = Given(tmp_path, api_key_env="ENGINE_KEY", replicas=[replica, {"name": "b"}]).deployment
    address = deployment.engine("a")
    assert address is not None
    assert (address.url, address.api_key) == ("http://gate.example:8000", "k")
    assert deployment.engine("b") is None
    assert deployment.target.headers == (("authorization", "Bearer k"),)
    assert (deployment.most_broken, deployment.most_error_share) == (1, 0.2)
    assert (deployment.pid("a"), deployment.resident_bytes("a"), deployment.duplicated()) == (None, None, None)
    assert asyncio.run(deployment.view()) is None
    assert asyncio.run(deployment.rows()) == []


def test_an_admin_port_that_does_not_answer_shows_nothing(tmp_path: Path) -> None:
    deployment = Given(tmp_path, admin_url="http://127.0.0.1:9", allow=["gate.example", "127.0.0.1"]).deployment
    assert asyncio.run(deployment.view()) is None


def test_a_journal_that_can_not_be_read_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text("{")
    assert BrokenJournal(path).entries() == []
