"""One log line per request, for ``--log-requests``. Names and figures only: no prompt, answer or key."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.lens.explain import phases_s
from tidegate.lens.row import Row


def log_line(row: Row, unix_minus_monotonic_s: float) -> str:
    """``row`` as ``key=value`` pairs; empty ones are left out, and values never hold blanks or line ends."""
    at = datetime.fromtimestamp(row.arrived_at + unix_minus_monotonic_s, UTC)
    pairs: dict[str, object] = {
        "id": row.request_id,
        "route": row.route,
        "model": row.upstream,
        "class": row.service_class,
        "tenant": row.tenant,
        "status": row.status,
        "outcome": "" if row.outcome is None else row.outcome.value,
        "reason": row.code if row.refused is None else row.refused.value,
        "waited_for": "" if row.waited_for is None else row.waited_for.value,
        "degraded": row.degraded or "",
        "served_by": row.served_by,
        "output_problem": row.output_problem,
        "input_problem": row.input_problem,
        "reuse": row.reuse,
        "continued_from": row.continued_from,
        "replica": row.replica or "",
        "attempts": row.attempts,
        "prompt_tokens": row.prompt_tokens,
        "output_tokens": row.output_tokens,
        "total_ms": _ms(row.closed_at - row.arrived_at),
    }
    pairs.update({f"{phase}_ms": _ms(spent_s) for phase, spent_s in phases_s(row).items()})
    words = (f"{key}={_word(value)}" for key, value in pairs.items() if value != "")
    return f"{at.isoformat(timespec='milliseconds')} request {' '.join(words)}"


def _ms(value_s: float) -> str:
    return f"{value_s * 1000:.1f}"


def _word(value: object) -> str:
    """Client-chosen text (an id, a model name) cannot forge a second pair or line."""
    return "".join(char if char.isprintable() and char not in ' ="' else "_" for char in str(value))
