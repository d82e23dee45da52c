"""The index of every key: what it means, what it may be, what it is when nobody sets it.

Read from the section models themselves, so ``explain KEY``, docs/configuration.md and the
suggestions cannot drift from what is validated.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, Tag
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tidegate.config.origin import Path
from tidegate.config.quantity import bytes_of
from tidegate.config.section import Ranged, Section, plain


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """One key of the YAML. ``<name>`` stands for a name the user chooses, ``[]`` for an entry of a list."""

    key: str
    type: str
    default: Any
    """PydanticUndefined: required."""
    range: str
    meaning: str
    spec: tuple[str, ...]
    """Rows of the requirements that ask for it."""
    of_kind: str = ""
    """Where a section comes in several kinds: the one that has it."""

    @property
    def required(self) -> bool:
        return self.default is PydanticUndefined


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """A type as the YAML sees it: a section with keys, one of several kinds of section, a table of named things, a
    list, or one value."""

    annotation: Any
    metadata: tuple[Any, ...] = ()

    def model(self) -> type[Section] | None:
        """The section model, when the shape has fixed keys."""
        if isinstance(self.annotation, type) and issubclass(self.annotation, Section):
            return self.annotation
        ranged = [each for each in self.metadata if isinstance(each, Ranged)]
        return ranged[0].model(self.annotation) if ranged else None

    def kinds(self) -> dict[str, type[Section]]:
        """The section models by kind, when the shape is one of several."""
        found = {}
        for choice in _union(self.annotation):
            tags = [each.tag for each in getattr(choice, "__metadata__", ()) if isinstance(each, Tag)]
            if tags:
                found[tags[0]] = get_args(choice)[0]
        return found

    def child(self, part: str | int) -> Shape | None:
        """The shape under one key or index; None when there can be none.

        Of several kinds: the one of this name, as the validator counts it, else what the first with such a key has.
        """
        kinds = self.kinds()
        if kinds:
            found = [kinds[part]] if part in kinds else [each for each in kinds.values() if part in each.model_fields]
            return None if not found else Shape(found[0]) if part in kinds else Shape(found[0]).child(part)
        model = self.model()
        if model is not None:
            info = model.model_fields.get(str(part))
            return None if info is None else shape(info.annotation, tuple(info.metadata))
        kind, arguments = get_origin(self.annotation), get_args(self.annotation)
        if kind is dict and isinstance(part, str):
            return shape(arguments[1])
        if kind in (tuple, list) and isinstance(part, int):
            return shape(arguments[0])
        return None

    def at(self, path: Path) -> Shape | None:
        found: Shape | None = self
        for part in path:
            found = found.child(part) if found is not None else None
        return found

    def written(self, path: Path) -> Path:
        """``path`` without the names of kinds that the validator puts into it."""
        found: Path = ()
        here: Shape | None = self
        for part in path:
            if here is None or part not in here.kinds():
                found = (*found, part)
            here = here.child(part) if here is not None else None
        return found

    def keys(self) -> tuple[str, ...]:
        kinds = self.kinds().values()
        if kinds:
            return tuple(dict.fromkeys(key for each in kinds for key in each.model_fields))
        model = self.model()
        return tuple(model.model_fields) if model is not None else ()

    def is_table(self) -> bool:
        return get_origin(self.annotation) is dict

    def is_list(self) -> bool:
        return get_origin(self.annotation) in (tuple, list)

    def takes_text(self) -> bool:
        """Whether a value given as bare text (a variable) is text already, and not a number to be read."""
        kinds = _union(self.annotation)
        texts = [kind for kind in kinds if kind is str or _is_text_choice(kind)]
        return bool(texts) and not any(kind in (int, float, bool) for kind in kinds)

    def type_name(self) -> str:
        return _type_name(self.annotation, self.metadata)


def shape(annotation: Any, metadata: tuple[Any, ...] = ()) -> Shape:
    """Strip ``Annotated`` and ``| None`` off a type."""
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        for each in more:
            metadata += tuple(each.metadata) if isinstance(each, FieldInfo) else (each,)
    kinds = _union(annotation)
    if len(kinds) == 1 and kinds[0] is not annotation:
        return shape(kinds[0], metadata)
    return Shape(annotation, metadata)


def _union(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(kind for kind in get_args(annotation) if kind is not types.NoneType)
    return (annotation,)


def _is_text_choice(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return all(isinstance(choice, str) for choice in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


_NAMES = {int: "whole number", float: "number", bool: "true or false", str: "text"}


def _type_name(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    if any(isinstance(each, BeforeValidator) and each.func is bytes_of for each in metadata):
        return "size"
    inner = shape(annotation)
    kind, arguments = get_origin(inner.annotation), get_args(inner.annotation)
    if kinds := inner.kinds():
        return " or ".join(f"{name} engine" for name in kinds)
    if kind is Literal:
        return ", ".join(str(choice) for choice in arguments)
    if kind in (tuple, list):
        return f"list of {_type_name(arguments[0])}"
    if kind is dict:
        return f"table of {_type_name(arguments[1])}"
    if isinstance(inner.annotation, type) and issubclass(inner.annotation, enum.Enum):
        return ", ".join(str(choice.value) for choice in inner.annotation)
    return _NAMES.get(inner.annotation) or _words(inner.annotation)


def _words(kind: type[Any]) -> str:
    """``ApiKey`` as ``api key``, ``ClassConfig`` as ``class``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__.removesuffix("Config")).lower()


def parameters(root: type[Section]) -> list[Parameter]:
    """Every key under ``root``, in the order of the file."""
    return list(_walk(Shape(root), "", plain(root())))


def _walk(parent: Shape, prefix: str, defaults: Any) -> Iterator[Parameter]:
    model = parent.model()
    for name, info in model.model_fields.items() if model is not None else ():
        key = f"{prefix}.{name}" if prefix else name
        inner = shape(info.annotation, tuple(info.metadata))
        default = defaults[name] if isinstance(defaults, dict) else plain(info.get_default(call_default_factory=True))
        if inner.model() is not None:
            if default is None:
                yield _parameter(key, info, inner, default)
            yield from _walk(inner, key, default)
            continue
        yield _parameter(key, info, inner, default)
        for kind, section in inner.kinds().items():
            yield from (dataclasses.replace(each, of_kind=kind) for each in _walk(Shape(section), key, None))
        element = inner.child("name") if inner.is_table() else inner.child(0)
        if element is not None and element.model() is not None:
            yield from _walk(element, f"{key}.<name>" if inner.is_table() else f"{key}[]", None)


def _parameter(key: str, info: FieldInfo, inner: Shape, default: Any) -> Parameter:
    meaning = " ".join((info.description or "").split()).replace("``", "`")
    return Parameter(
        key,
        inner.type_name(),
        default,
        _range(inner.metadata),
        meaning,
        tuple(re.findall(r"\b[SC]\d+(?:-\d+)?\b", meaning)),
    )


_BOUNDS = {
    "gt": "> {}",
    "ge": "≥ {}",
    "lt": "< {}",
    "le": "≤ {}",
    "min_length": "at least {} long",
    "max_length": "at most {} long",
    "pattern": "matches {}",
}


def _range(metadata: tuple[Any, ...]) -> str:
    found = [
        form.format(getattr(each, bound))
        for each in metadata
        for bound, form in _BOUNDS.items()
        if not isinstance(each, Ranged) and getattr(each, bound, None) is not None
    ]
    return ", ".join(dict.fromkeys(found))
