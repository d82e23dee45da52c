"""What no single value can get wrong: keys that contradict each other, files and variables that are not there."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.config.problem import Problem
from tidegate.config.settings import Settings


def cross_check(settings: Settings) -> list[Problem]:
    """Every contradiction in sound values."""
    return list(_ports(settings))


def _ports(settings: Settings) -> Iterator[Problem]:
    server = settings.server
    if server.port and server.port == server.admin_port:
        yield Problem(("server", "admin_port"), f"is the data port too ({server.port}); give each its own")
