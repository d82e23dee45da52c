"""Seeded randomness, one stream per purpose.

Lengths do not move when a scenario draws one arrival more, and no policy draws from these at all,
so all policies meet the same traffic. Seeding by text does not depend on PYTHONHASHSEED.
"""

from __future__ import annotations

from random import Random


def stream(seed: int, purpose: str) -> Random:
    return Random(f"tidegate/{purpose}/{seed}")  # noqa: S311 - repeatable traffic, no secret
