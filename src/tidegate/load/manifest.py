"""What a plan sends, so that two runs can be shown to have sent the same (SPEC S2-25, S0-99)."""

from __future__ import annotations

import platform
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from typing import Any

from tidegate.load.ask import Ask
from tidegate.load.phase import Phase
from tidegate.load.plan import Plan

MOST_HASHED = 20_000
"""Asks of a phase that go into its hash; a longer phase, and one without end, is told by its beginning."""
SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})


def manifest(plan: Plan) -> dict[str, Any]:
    """Equal for equal traffic, whoever runs it and with which keys; ``made_by`` aside."""
    return {
        "plan": plan.name,
        "seed": plan.seed,
        "notes": dict(plan.notes),
        "phases": [_phase(phase, plan.seed) for phase in plan.phases],
        "made_by": {
            "tidegate": version("tidegate"),
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
    }


def _phase(phase: Phase, seed: int) -> dict[str, Any]:
    # One more than is hashed tells whether that was all.
    wanted = MOST_HASHED if phase.count is None else min(MOST_HASHED, phase.count)
    digest, hashed, tokens, is_all = sha256(), 0, 0, True
    for ask in islice(phase.source.asks(seed), wanted + 1):
        if phase.users is None and ask.due_s >= phase.duration_s:
            break
        if hashed == wanted:
            is_all = phase.count == wanted
            break
        digest.update(line_of(ask))
        hashed += 1
        tokens += ask.prompt_tokens
    return {
        "phase": phase.name,
        "kind": phase.kind.value,
        "sends": phase.source.title,
        "duration_s": phase.duration_s,
        "users": phase.users,
        "count": phase.count,
        "rate_per_s": phase.rate_per_s,
        "spike_s": phase.spike,
        "hashed_asks": hashed,
        "is_whole": is_all,
        "meant_prompt_tokens": tokens,
        "sha256": digest.hexdigest(),
    }


def line_of(ask: Ask) -> bytes:
    """All of an ask that a target sees, and when, to the microsecond; without secrets."""
    headers = sorted((name, value) for name, value in ask.headers if name.lower() not in SECRET_HEADERS)
    said = (ask.index, round(ask.due_s * 1e6), ask.path, headers, ask.tenant, ask.patience_s)
    return repr(said).encode() + b"\n" + ask.body + b"\n"
