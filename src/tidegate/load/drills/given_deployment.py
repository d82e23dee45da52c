"""A service that runs already, broken and put back by its operator's own commands (SPEC S1-72)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.engines.address import Address
from tidegate.errors import EngineError, TidegateError
from tidegate.load.drills.broken_journal import BrokenJournal
from tidegate.load.drills.drill_sections import CommandsSection, DeploymentSection, ReplicaSection
from tidegate.load.drills.setup import Setup
from tidegate.load.drills.until import until
from tidegate.load.target import Target
from tidegate.wire.fetch import fetch

ASK_WITHIN_S = 5.0
ENGINE_WITHIN_S = 60.0
STATUS_WITHIN_S = 30.0


class GivenDeployment:
    """Implements ``deployment.Deployment``. What can't be put back stays in ``journal``, for the next run."""

    is_own = False

    def __init__(self, section: DeploymentSection, journal: BrokenJournal, say: Callable[[str], None]) -> None:
        self.name = section.name
        self._section = section
        self._journal = journal
        self._say = say
        self._replicas = {each.name: each for each in section.replicas}
        key = _bearer(section.api_key_env)
        self.target = Target(
            name=section.name,
            url=section.url.rstrip("/"),
            model=section.model,
            headers=tuple(key.items()),
            admin_url=section.admin_url,
        )

    @property
    def replicas(self) -> Sequence[str]:
        return [*self._replicas]

    @property
    def most_broken(self) -> int:
        return self._section.blast_radius.most_replicas

    @property
    def most_error_share(self) -> float:
        return self._section.blast_radius.most_error_share

    def why_not(self, fault: str) -> str:
        if fault in self._section.faults:
            return ""
        return "" if self.breakable(fault) else "the drill file has no commands for it"

    def breakable(self, fault: str) -> Sequence[str]:
        return [name for name, each in self._replicas.items() if fault in each.faults]

    async def prepare(self, _setup: Setup) -> None:
        """What an earlier run left broken is put back; then all must serve. Raises EngineError."""
        for fault, of in reversed(self._journal.entries()):
            await self.restore(fault, of)
        for replica in self._replicas.values():
            for fault, commands in replica.faults.items():
                if await self._run(commands.status, STATUS_WITHIN_S) != 0:
                    raise EngineError(f"{replica.name} does not serve before the drill (status of {fault})")

    async def break_(self, fault: str, replica: str | None) -> None:
        commands = self._commands(fault, replica)
        self._journal.note(fault, replica)
        self._say(f"{self.name}: {fault}: {commands.break_it}")
        await self._done(commands.break_it)

    async def restore(self, fault: str, replica: str | None) -> None:
        commands = self._commands(fault, replica)
        self._say(f"{self.name}: {fault}: {commands.restore}")
        await self._done(commands.restore)

        async def serves() -> bool:
            return await self._run(commands.status, STATUS_WITHIN_S) == 0

        await until(serves, self._section.command_within_s, f"{replica or self.name} does not serve again")
        self._journal.clear(fault, replica)

    async def view(self) -> Mapping[str, Any] | None:
        return await self._admin("/admin/view")

    async def rows(self) -> Sequence[Mapping[str, Any]]:
        found = await self._admin("/admin/requests?limit=10000")
        return [] if found is None else list(found["requests"])

    def take_remarks(self) -> list[str]:
        return []

    def duplicated(self) -> int | None:
        """Nobody stands between this gateway and its engines."""
        return None

    def engine(self, replica: str) -> Address | None:
        section: ReplicaSection = self._replicas[replica]
        if section.url is None:
            return None
        key = None if section.api_key_env is None else os.environ.get(section.api_key_env)
        return Address(url=section.url.rstrip("/"), api_key=key, timeout_s=ENGINE_WITHIN_S)

    def pid(self, _replica: str) -> int | None:
        return None

    def resident_bytes(self, _replica: str) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing here was started."""

    def _commands(self, fault: str, replica: str | None) -> CommandsSection:
        table = self._section.faults if replica is None else self._replicas[replica].faults
        if fault not in table:
            raise EngineError(f"the drill file has no commands for {fault} of {replica or self.name}")
        return table[fault]

    async def _done(self, command: str) -> None:
        status = await self._run(command, self._section.command_within_s)
        if status != 0:
            raise EngineError(f"ended with status {status}: {command}")

    async def _run(self, command: str, within_s: float) -> int | None:
        """Its exit status; None: it took too long and was ended, with all that it started."""
        process = await asyncio.create_subprocess_shell(
            command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        try:
            async with asyncio.timeout(within_s):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    async def _admin(self, path: str) -> dict[str, Any] | None:
        if self._section.admin_url is None:
            return None
        headers = _bearer(self._section.admin_token_env)
        try:
            reply = await fetch(f"{self._section.admin_url.rstrip('/')}{path}", headers=headers, timeout_s=ASK_WITHIN_S)
        except (OSError, TidegateError):
            return None
        if reply.status != 200:
            return None
        answer: dict[str, Any] = msgspec.json.decode(reply.body)
        return answer


def _bearer(variable: str | None) -> dict[str, str]:
    return {} if variable is None else {"authorization": f"Bearer {os.environ.get(variable, '')}"}
