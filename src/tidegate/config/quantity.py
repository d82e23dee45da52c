"""Sizes with a unit: ``32MiB`` in the file, bytes inside."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def bytes_of(value: Any) -> Any:
    """A whole number stays as it is; text such as ``32 MiB`` becomes bytes. Raises ValueError."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", value, flags=re.ASCII)
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"must be a size such as 33554432 or 32MiB, got {value!r}")
    return int(match[1]) * _UNITS[match[2].upper()]


SIZE_TEXT = (
    BeforeValidator(bytes_of),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+ *([KMG]i?)?B?$"}]}
    ),
)
"""Lets a number of bytes be written with its unit."""

Size = Annotated[int, Field(ge=0), *SIZE_TEXT]
