"""The head of a GGUF file: its metadata and the size of its tensors, without the tensors themselves.

Format: the GGUF specification of ggml (docs/gguf.md there), versions 2 and 3, little-endian.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from tidegate.errors import ConfigError
from tidegate.plan.precision import TENSOR_TYPES

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_ITEMS = 2**24
"""More tensors, keys or list items than any real file has: a broken head."""

_NUMBERS: Mapping[int, str] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_TEXT, _LIST = 8, 9
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    numbers: int
    size_bytes: int
    type_name: str


@dataclass(frozen=True, slots=True)
class Header:
    metadata: Mapping[str, Any]
    """Lists of numbers are kept; of a list of texts (the vocabulary), only how long it is."""
    tensors: tuple[Tensor, ...]


def is_gguf(path: Path) -> bool:
    """Whether ``path`` begins as a GGUF file does. Raises ConfigError where it cannot be read."""
    try:
        with path.open("rb") as content:
            return content.read(4) == MAGIC
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror})"]) from None


def read_header(path: Path) -> Header:
    """The head of ``path``; of a split file, with the tensors of all its parts. Raises ConfigError."""
    first = _read(path)
    if int(first.metadata.get("split.count") or 1) < 2:
        return first
    tensors = first.tensors
    for part in _other_parts(path):
        tensors += _read(part).tensors
    return Header(first.metadata, tensors)


def _other_parts(path: Path) -> list[Path]:
    match = _SPLIT.search(path.name)
    if match is None or int(match[1]) != 1:
        raise ConfigError([f"{path}: one part of a split model; give its first part, …-00001-of-NNNNN.gguf"])
    stem, count = path.name[: match.start()], int(match[2])
    parts = [path.with_name(f"{stem}-{number:05}-of-{count:05}.gguf") for number in range(2, count + 1)]
    if missing := [part.name for part in parts if not part.is_file()]:
        raise ConfigError([f"{path}: its part {missing[0]} is not beside it"])
    return parts


def _read(path: Path) -> Header:
    try:
        with path.open("rb") as content:
            return _Reader(content).header()
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror})"]) from None
    except (struct.error, ValueError) as error:
        raise ConfigError([f"{path}: not a readable GGUF file ({error})"]) from None


class _Reader:
    """Reads on from where it stands; ValueError or struct.error where the content is not GGUF."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content

    def header(self) -> Header:
        if self._content.read(4) != MAGIC:
            raise ValueError("it does not begin with GGUF")
        version = self._number("<I")
        if version not in VERSIONS:
            raise ValueError(f"version {version} is not one of {VERSIONS}")
        tensors, keys = self._count(), self._count()
        metadata = {self._text(): self._value(self._number("<I")) for _ in range(keys)}
        return Header(metadata, tuple(self._tensor() for _ in range(tensors)))

    def _tensor(self) -> Tensor:
        name = self._text()
        numbers = prod(self._number("<Q") for _ in range(self._number("<I")))
        code = self._number("<I")
        self._number("<Q")
        if (kind := TENSOR_TYPES.get(code)) is None:
            raise ValueError(f"tensor {name} has type {code}, which is not known here")
        return Tensor(name, numbers, kind.stored_bytes(numbers), kind.name)

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _TEXT:
            return self._text()
        if kind != _LIST:
            raise ValueError(f"a value has type {kind}, which GGUF does not have")
        inner, length = self._number("<I"), self._count()
        items = [self._value(inner) for _ in range(length)]
        return length if inner == _TEXT else items

    def _text(self) -> str:
        return self._bytes(self._count()).decode("utf-8", "replace")

    def _count(self) -> int:
        count = self._number("<Q")
        if count > MOST_ITEMS:
            raise ValueError(f"it names {count} items of one kind")
        return int(count)

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _bytes(self, length: int) -> bytes:
        found = self._content.read(length)
        if len(found) < length:
            raise ValueError("it ends in the middle of its head")
        return found
