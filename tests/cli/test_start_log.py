"""The lines of the start: true figures, and an address that can be called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.build import build
from tidegate.cli.start_log import address_line, free_slots, plan_lines, ready_lines
from tidegate.config import Settings, load
from tidegate.gateway.composition import Told, plans_told
from tidegate.gateway.messages import Ready
from tidegate.policy.reading import Capacity

YAML = """
upstreams:
  chat:
    replicas:
      - {url: "http://10.0.0.1:8000", bytes_per_token: 131072}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "tidegate.yaml"
    file.write_text(YAML)
    return load(file, {}, {})


def view(*slots: tuple[int | None, int | None]) -> dict[str, Any]:
    return {"replicas": {str(n): {"slots": {"free": free, "total": total}} for n, (free, total) in enumerate(slots)}}


def test_slots_and_timeouts_are_told_before_anything_is_served(settings: Settings) -> None:
    told = {"chat-0": Told(capacity=Capacity(kv_tokens=196_608, slot_tokens=2048))}
    lines = plan_lines(settings, plans_told(settings, told).values())
    assert lines[0] == "Pre-allocating 96 memory slots (256MB each) → total 24.0GB"
    assert lines[1] == "Slot allocation completed. Free slots: 96/96"
    assert lines[2] == "Timeouts:"
    assert lines[3].startswith("  client deadline")


@pytest.mark.parametrize(
    ("seen", "counted"),
    [
        (view((3, 4), (2, 2)), (5, 6)),
        (view((3, 4), (None, None)), (None, None)),
        (view(), (None, None)),
        (None, (None, None)),
    ],
)
def test_slots_are_summed_only_when_every_pool_is_known(
    seen: dict[str, Any] | None, counted: tuple[int | None, int | None]
) -> None:
    assert free_slots(seen) == counted


def test_the_last_lines_say_what_is_free_and_what_to_call(settings: Settings) -> None:
    ready = Ready("0.0.0.0", 8000, 1)
    address = address_line(settings, ready, 8001)
    where = "OpenAI API at http://127.0.0.1:8000/v1, metrics and admin at http://127.0.0.1:8001"
    assert address == f"{where} ({build()} build)"
    free, call = ready_lines(settings, ready, view((4, 4)))
    assert free == "Server ready. Free slots: 4/4"
    assert "curl http://127.0.0.1:8000/v1/chat/completions" in call
    assert '"model": "chat"' in call
    assert "authorization" not in call
    assert "http://[::1]:9/v1" in address_line(settings, Ready("::1", 9, 1), 8001)
