"""When drills run again. Without jitter: an operator who reads the next time can rely on it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from math import floor

from tidegate.errors import ConfigError

UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
LEAST_S = 60.0
_TEXT = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)", flags=re.ASCII)


def every_s(text: str) -> float:
    """``24h``, ``30min``, ``7d`` in seconds. Raises ConfigError."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ConfigError([f"--every: must be a time such as 30min, 24h or 7d, got {text!r}"])
    seconds = float(found[1]) * UNITS_S[found[2]]
    if seconds < LEAST_S:
        raise ConfigError([f"--every: must be at least one minute, got {text!r}"])
    return seconds


def next_run(first: datetime, period_s: float, now: datetime) -> datetime:
    """The next whole number of periods after ``first``; times that passed while a run lasted are left out."""
    passed = floor((now - first).total_seconds() / period_s)
    return first + timedelta(seconds=period_s * (max(0, passed) + 1))
