"""A replica before and after a restart, asked at its own port."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from tests.load.drills.chat_server import HEAD, ChatServer
from tests.load.drills.test_drill_runner import Broken
from tidegate.engines.address import Address
from tidegate.load.drills.restart_check import RestartCheck
from tidegate.load.drills.restart_inspection import RestartInspection, gpu_bytes


class Engine(ChatServer):
    """Counts its cache up with every prompt, lists its model, and may have lost it."""

    def __init__(self, model: str = "m") -> None:
        super().__init__()
        self.model = model
        self.prompts = 0

    def answer(self, body: bytes) -> bytes:
        self.prompts += bool(body)
        whole = json.loads(super().answer(body).partition(b"\r\n\r\n")[2])
        whole["usage"]["prompt_tokens_details"] = {"cached_tokens": 0 if self.prompts % 2 else 90}
        content = json.dumps(whole | {"data": [{"id": self.model}]}).encode()
        return HEAD % (200, b"OK", b"application/json", b"a", len(content), content)


class Restarted(Broken):
    """``a`` is asked at the server's own port."""

    address: Address | None = None

    def engine(self, _replica: str) -> Address | None:
        return self.address

    def pid(self, _replica: str) -> int | None:
        return os.getpid()

    def resident_bytes(self, _replica: str) -> int | None:
        return 100 << 20


def inspect(model: str = "m", *, is_known: bool = True, is_gone: bool = False) -> RestartCheck:
    async def whole() -> RestartCheck:
        async with Engine(model) as server:
            deployment = Restarted(server)
            deployment.address = Address(url=server.url) if is_known else None
            inspection = RestartInspection(deployment, "a")
            if is_gone:
                deployment.address = Address(url="http://127.0.0.1:9")
            await inspection.before()
            return await inspection.after(time.monotonic())

    return asyncio.run(whole())


def test_model_caches_memory_and_first_request_are_told() -> None:
    check = inspect()
    assert check.is_loaded
    assert (check.cached_before, check.cached_first, check.cached_second) == (90, 0, 90)
    assert check.residual == 1.0
    assert check.first_request_s is not None
    assert check.back_s is not None
    assert check.back_s >= check.first_request_s
    assert not check.problem


def test_another_model_is_not_the_one_that_was_loaded() -> None:
    assert not inspect("other").is_loaded


def test_an_engine_whose_address_nobody_knows_is_told() -> None:
    check = inspect(is_known=False)
    assert check.problem == "its engine's own address is not known"
    assert (check.is_loaded, check.back_s) == (None, None)


def test_an_engine_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.load.drills.restart_inspection.BACK_WITHIN_S", 0.05)
    check = inspect(is_gone=True)
    assert "a does not serve again within 0.05 s" in check.problem
    assert check.is_loaded is False


def test_gpu_memory_is_what_nvidia_smi_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 123, 400\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert asyncio.run(gpu_bytes(123)) == 400 << 20
    assert asyncio.run(gpu_bytes(None)) is None


def test_without_nvidia_smi_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asyncio.run(gpu_bytes(123)) is None
