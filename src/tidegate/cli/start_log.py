"""The lines that ``tidegate serve`` prints while it starts (SPEC S0-11), with true figures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tidegate.cli.build import build
from tidegate.config import Settings
from tidegate.config.slot_plan import SlotPlan, allocation_lines, ready_line
from tidegate.config.timeout_tree import timeout_tree
from tidegate.gateway.messages import Ready


def plan_lines(settings: Settings, plans: Iterable[SlotPlan]) -> list[str]:
    """Slots per replica, and the timeout tree (R9)."""
    lines = [line for plan in plans for line in allocation_lines(plan)] if settings.slots.enabled else []
    return [*lines, "Timeouts:", *(f"  {line}" for line in timeout_tree(settings).lines())]


def free_slots(view: dict[str, Any] | None) -> tuple[int | None, int | None]:
    """Free and total slots of all replicas in a view of Path; None where a pool is not known."""
    slots = [replica["slots"] for replica in (view or {}).get("replicas", {}).values()]
    if not slots or any(each["total"] is None for each in slots):
        return None, None
    return sum(each["free"] for each in slots), sum(each["total"] for each in slots)


def address_line(settings: Settings, ready: Ready, admin_port: int) -> str:
    """Where it listens and which build serves there, known before any engine is ready."""
    admin = f"http://{_reachable(settings.server.admin_host)}:{admin_port}"
    return f"OpenAI API at {_address(ready)}/v1, metrics and admin at {admin} ({build()} build)"


def ready_lines(settings: Settings, ready: Ready, view: dict[str, Any] | None) -> list[str]:
    """The last lines: what is free, and a call to try."""
    model = next(iter(settings.upstreams))
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 32})
    key = ' -H "authorization: Bearer $KEY"' if settings.server.api_keys else ""
    return [
        ready_line(*free_slots(view)),
        f"Try: curl {_address(ready)}/v1/chat/completions{key} -H 'content-type: application/json' -d '{body}'",
    ]


def _address(ready: Ready) -> str:
    return f"http://{_reachable(ready.host)}:{ready.port}"


def _reachable(host: str) -> str:
    """An address to call: a port bound to every address is reached on this machine."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
