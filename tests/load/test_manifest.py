"""What goes into the hash of what was sent, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.load.asks_of_a_test import Even, ask
from tidegate.load import manifest as module
from tidegate.load.manifest import line_of, manifest
from tidegate.load.phase import Phase
from tidegate.load.plan import Plan


def told(**fields: Any) -> dict[str, Any]:
    phase = Phase(name="p", source=Even(10.0), **{"duration_s": 2.0, **fields})
    found: dict[str, Any] = manifest(Plan(name="x", seed=1, phases=(phase,)))["phases"][0]
    return found


def test_an_open_phase_is_hashed_up_to_its_end() -> None:
    found = told()
    assert (found["hashed_asks"], found["is_whole"]) == (20, True)
    assert told(duration_s=1.9)["sha256"] != found["sha256"]


def test_a_counted_phase_is_hashed_up_to_its_count() -> None:
    found = told(users=2, count=7, duration_s=100.0)
    assert (found["hashed_asks"], found["is_whole"]) == (7, True)


def test_an_endless_phase_is_told_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HASHED", 5)
    assert (told(users=2)["hashed_asks"], told(users=2)["is_whole"]) == (5, False)
    assert (told()["hashed_asks"], told()["is_whole"]) == (5, False)
    assert told(users=2, count=9)["is_whole"] is False


def test_secrets_do_not_change_the_hash_and_all_else_does() -> None:
    plain = ask(0, headers=(("x-a", "1"),))
    assert line_of(replace(plain, headers=(("Authorization", "Bearer k"), ("x-a", "1")))) == line_of(plain)
    changes: list[dict[str, Any]] = [
        {"body": b",}"},
        {"due_s": 1.0},
        {"headers": (("x-a", "2"),)},
        {"path": "/completions"},
        {"tenant": "t"},
        {"patience_s": 1.0},
    ]
    assert len({line_of(replace(plain, **change)) for change in changes} | {line_of(plain)}) == len(changes) + 1
