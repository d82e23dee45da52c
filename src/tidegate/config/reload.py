"""A configuration read again: what differs, and what of it takes effect without a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.config.origin import Path, dotted
from tidegate.config.section import plain
from tidegate.config.settings import Settings
from tidegate.config.tree import leaves

RESTART: tuple[Path, ...] = (
    ("server", "host"),
    ("server", "port"),
    ("server", "admin_host"),
    ("server", "admin_port"),
    ("server", "admin_tokens"),
    ("lens",),
)
"""Bound or sized once, at start. ``upstreams.<name>.engine`` is too."""


def is_bound_at_start(path: Path) -> bool:
    is_engine = path[:1] == ("upstreams",) and path[2:3] == ("engine",)
    return is_engine or any(path[: len(each)] == each for each in RESTART)


@dataclass(frozen=True, slots=True)
class Change:
    """One key that differs. None: it is not there."""

    path: Path
    old: Any
    new: Any

    @property
    def needs_restart(self) -> bool:
        """The running process keeps the old value until it is started again."""
        return is_bound_at_start(self.path)

    def line(self) -> str:
        """``tail.timeouts.multiplier: 3.0 -> 4.0``."""
        later = " (after a restart)" if self.needs_restart else ""
        if self.old is None:
            return f"{dotted(self.path)}: set to {self.new}{later}"
        if self.new is None:
            return f"{dotted(self.path)}: removed (was {self.old}){later}"
        return f"{dotted(self.path)}: {self.old} -> {self.new}{later}"


def diff(old: Settings, new: Settings) -> list[Change]:
    """Every key that differs, in the order of the file. Values out of ``${NAME}`` are shown as that."""
    before, after = _shown(old), _shown(new)
    sections = list(Settings.model_fields)
    paths = sorted(dict.fromkeys([*before, *after]), key=lambda path: sections.index(str(path[0])))
    found = [Change(path, before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)]
    return [each for each in found if each.old is not None or each.new is not None]


def _shown(settings: Settings) -> dict[Path, Any]:
    return {path: shown(settings, path, value) for path, value in leaves(plain(settings))}


def shown(settings: Settings, path: Path, value: Any) -> Any:
    """A value as people may see it: the text before ``${NAME}`` was replaced, where there was one."""
    raw = settings.origin(path).raw
    return value if raw is None else raw
