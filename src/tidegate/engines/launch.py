"""How an engine process is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command and what it is told.

    The process says on its standard output, in one line of JSON, either ``{"listening": URL}`` or, before
    it ends, ``{"problem": text}``. It ends when its standard input does, so that it cannot outlive us.
    """

    name: str
    """Prefix of its log lines."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to our own environment."""
    first_line: bytes = b""
    """Written to its standard input, which then stays open. Secrets go here: not visible in a process list."""


CANNOT_RUN = 78
"""Exit status of a process that would fail the same way again (EX_CONFIG of sysexits.h)."""
