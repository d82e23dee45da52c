"""Looks at a replica before and after a restart: model, caches, memory, first request (SPEC S1-64)."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass
from typing import Any

import msgspec

from tidegate.engines.address import Address
from tidegate.errors import TidegateError
from tidegate.load.drills.deployment import Deployment
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.restart_check import RestartCheck
from tidegate.load.drills.steady_load import chat_body
from tidegate.load.drills.until import until

LONG_TEXT = "Repeat the last word of this list: " + " ".join(f"item{(index * 7) % 41}" for index in range(20)) + "."
TOKENS = 4
BACK_WITHIN_S = 60.0
MIB = 1 << 20


@dataclass(slots=True)
class _Answer:
    took_s: float
    text: str
    cached_tokens: int | None


class RestartInspection:
    """``before`` is called while the replica is well, ``after`` once it was ended."""

    def __init__(self, deployment: Deployment, replica: str) -> None:
        self._deployment = deployment
        self._check = RestartCheck(replica=replica)
        self._model = deployment.target.model

    async def before(self) -> None:
        """Also puts the inspection's own prompt into its prefix cache."""
        check, deployment = self._check, self._deployment
        check.resident_before_bytes = deployment.resident_bytes(check.replica)
        check.gpu_before_bytes = await gpu_bytes(deployment.pid(check.replica))
        address = deployment.engine(check.replica)
        if address is None:
            check.problem = "its engine's own address is not known"
            return
        try:
            await self._ask(address)
            check.cached_before = (await self._ask(address)).cached_tokens
        except (OSError, TidegateError) as error:
            check.problem = f"before: {error}"

    async def after(self, ended_at: float) -> RestartCheck:
        """Wait for it to serve again; ``ended_at``: ``time.monotonic()`` of its end."""
        check = self._check
        address = self._deployment.engine(check.replica)
        if address is not None:
            check.is_loaded = False
            try:
                await self._come_back(address, ended_at)
            except (OSError, TidegateError) as error:
                check.problem = f"after: {type(error).__name__} {error}"
        check.resident_after_bytes = self._deployment.resident_bytes(check.replica)
        check.gpu_after_bytes = await gpu_bytes(self._deployment.pid(check.replica))
        return check

    async def _come_back(self, address: Address, ended_at: float) -> None:
        check = self._check
        await until(lambda: _is_healthy(address), BACK_WITHIN_S, f"{check.replica} does not serve again")
        first = await self._ask(address)
        check.back_s = time.monotonic() - ended_at
        check.first_request_s, check.cached_first = first.took_s, first.cached_tokens
        second = await self._ask(address)
        check.second_request_s, check.cached_second = second.took_s, second.cached_tokens
        listed = await address.ask_for(dict[str, Any], "/v1/models")
        names = {str(each.get("id")) for each in listed.get("data", [])}
        check.is_loaded = self._model in names and bool(first.text.strip())

    async def _ask(self, address: Address) -> _Answer:
        began = time.monotonic()
        body = b'{"model":' + msgspec.json.encode(self._model) + chat_body(LONG_TEXT, TOKENS, is_stream=False)
        found = await address.ask_for(dict[str, Any], "/v1/chat/completions", body)
        took_s = time.monotonic() - began
        details = (found.get("usage") or {}).get("prompt_tokens_details") or {}
        choices = found.get("choices") or [{}]
        return _Answer(took_s, str(choices[0].get("message", {}).get("content", "")), details.get("cached_tokens"))


async def _is_healthy(address: Address) -> bool:
    try:
        return (await address.ask("/health", timeout_s=2.0)).status == 200
    except (OSError, TidegateError):
        return False


async def gpu_bytes(pid: int | None) -> int | None:
    """GPU memory of a process, by ``nvidia-smi``; None where there is none or it does not tell."""
    found = shutil.which("nvidia-smi")
    if found is None or pid is None:
        return None
    query = ("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    process = await asyncio.create_subprocess_exec(found, *query, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return used_by(pid, out.decode(errors="replace"))


def used_by(pid: int, table: str) -> int | None:
    """From lines of ``pid, MiB``."""
    rows = [line.split(",") for line in table.splitlines() if line.count(",") == 1]
    used = [int(mib) * MIB for number, mib in rows if number.strip() == str(pid) and mib.strip().isdigit()]
    return sum(used) if used else None


def keep(findings: Findings, check: RestartCheck) -> None:
    """Put it into the findings, with what the bars of every restart read."""
    findings.restarts.append(check)
    checks = findings.restarts
    is_known = all(each.is_loaded is not None for each in checks)
    findings.figures["not_loaded"] = float(sum(not each.is_loaded for each in checks)) if is_known else None
    findings.figures["back_s"] = _most([each.back_s for each in checks])
    findings.figures["residual"] = _most([each.residual for each in checks])
    findings.figures["first_request_s"] = _most([each.first_request_s for each in checks])
    findings.figures["warm_share"] = _most([each.warm_share for each in checks])


def _most(values: list[float | None] | list[int | None]) -> float | None:
    known = [each for each in values if each is not None]
    return float(max(known)) if known and len(known) == len(values) else None
