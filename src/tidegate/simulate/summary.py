"""The middle of several runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any


def medians(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Field by field, the median of the numbers; what is no number must be equal, or is left out.

    A field that is null in some runs is the median of the others, null if there are none.
    """
    first = reports[0]
    merged = {key: _merge([report.get(key) for report in reports]) for key in first if key not in ("seed", "notes")}
    return {key: value for key, value in merged.items() if value != {}} | {
        "seeds": [report["seed"] for report in reports]
    }


def _merge(values: Sequence[Any]) -> Any:
    if isinstance(values[0], dict):
        keys = dict.fromkeys(key for value in values if value for key in value)
        return {key: _merge([value.get(key) for value in values]) for key in keys}
    if isinstance(values[0], str | bool):
        return values[0] if all(value == values[0] for value in values) else None
    known = [value for value in values if value is not None]
    return median(known) if known else None
