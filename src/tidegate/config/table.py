"""The table of every key in docs/configuration.md."""

from __future__ import annotations

from typing import Any

from tidegate.config.parameters import Parameter, parameters
from tidegate.config.settings import Settings


def markdown_table() -> str:
    """One table per section, in the order of the file."""
    lines: list[str] = []
    section = ""
    for each in parameters(Settings):
        first = each.key.split(".")[0]
        if first != section:
            section = first
            lines += ["", f"### `{section}`", "", "| key | type | default | range | meaning |", "|---|---|---|---|---|"]
        lines.append(_row(each))
    return "\n".join(lines).strip() + "\n"


def _row(each: Parameter) -> str:
    of_kind = f" ({each.of_kind})" if each.of_kind else ""
    cells = (f"`{each.key}`{of_kind}", each.type, default_text(each), each.range, each.meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def default_text(each: Parameter) -> str:
    """The default as the YAML would write it."""
    if each.required:
        return "required"
    return _text(each.default)


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
