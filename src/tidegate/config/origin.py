"""Where a configured value came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

Path = tuple[str | int, ...]
"""A place in the configuration: ``("upstreams", "chat", "replicas", 0, "url")``."""


class Kind(Enum):
    """The layers, weakest first."""

    DEFAULT = "default"
    PRESET = "preset"
    STABILITY = "stability.json"
    FILE = "file"
    ALIAS = "alias"
    ENV = "env"
    FLAG = "flag"
    API = "admin API"
    """Set while the service runs."""
    MODE = "mode"
    """Forced by ``mode: dev``."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One value's source, precise enough to go and change it."""

    kind: Kind
    source: str = ""
    """File name, environment variable or command-line flag."""
    line: int = 0
    """From 1; 0 where lines have no meaning."""
    column: int = 0
    key_line: int = 0
    key_column: int = 0
    written_as: str = ""
    """The key as its author wrote it, where that differs from ours (aliases)."""
    raw: str | None = None
    """The text before ``${NAME}`` was replaced: what may be shown, since the value may be a secret."""

    def place(self, of_key: bool = False) -> str:
        """``file:line:col``, or the variable or flag; ``of_key`` points at the key instead of the value."""
        line, column = (self.key_line, self.key_column) if of_key and self.key_line else (self.line, self.column)
        if line:
            return f"{self.source}:{line}:{column}"
        return f"environment {self.source}" if self.kind in (Kind.ENV, Kind.ALIAS) else self.source

    def with_raw(self, raw: str) -> Origin:
        return replace(self, raw=raw)


DEFAULT = Origin(Kind.DEFAULT)
ADMIN_API = Origin(Kind.API, "admin API")


def dotted(path: Path) -> str:
    """The key as documentation and messages write it: ``upstreams.chat.replicas[0].url``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part or '""'
            text += f".{name}" if text else name
    return text
