"""What every section of the YAML has in common, and sections that are taken from a policy's own dataclass."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema


class Section(BaseModel):
    """Strict: a quoted number is text, and ``true`` is no number. Unknown keys refuse to start."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        validate_default=False,
    )


class _Derived(Section):
    """Made at run time: its meanings are handed to it, and looking for its source would cost a second."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class Ranged:
    """Validates a policy's frozen dataclass as a section; the parameter stays declared once, beside its policy.

    ``Annotated[TimeoutsConfig, Ranged(multiplier=Field(gt=1), gap=PHASE)]``: types and defaults come
    from the dataclass, and so does the meaning where a string stands under the field. Here each
    field gets its range, a meaning where the dataclass gives none, and a ``Ranged`` of its own where
    it is a dataclass too.
    """

    def __init__(self, **ranges: Any) -> None:
        self.ranges: Mapping[str, tuple[Any, ...]] = {
            name: each if isinstance(each, tuple) else (each,) for name, each in ranges.items()
        }
        self.built: dict[type[Any], type[Section]] = {}

    def model(self, config: type[Any]) -> type[Section]:
        """The section that ``config`` is validated by; the same one each time."""
        if config not in self.built:
            self.built[config] = section_of(config, self.ranges)
        return self.built[config]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        model = self.model(source)
        return core_schema.no_info_after_validator_function(
            lambda values: source(**{name: getattr(values, name) for name in type(values).model_fields}),
            handler.generate_schema(model),
            serialization=core_schema.plain_serializer_function_ser_schema(plain),
        )


def section_of(config: type[Any], ranges: Mapping[str, tuple[Any, ...]]) -> type[Section]:
    """The section model of one dataclass. Raises KeyError when ``ranges`` names no field of it."""
    unknown = set(ranges) - {each.name for each in dataclasses.fields(config)}
    if unknown:
        raise KeyError(f"{config.__name__} has no {', '.join(sorted(unknown))}")
    hints = get_type_hints(config, include_extras=True)
    meanings = field_meanings(config)
    fields: dict[str, Any] = {}
    for each in dataclasses.fields(config):
        metadata = ranges.get(each.name, ())
        told = [info.description for info in metadata if isinstance(info, FieldInfo) and info.description]
        described = Field(description=told[0] if told else meanings.get(each.name), **_default(each))
        annotation = Annotated[(hints[each.name], *metadata)] if metadata else hints[each.name]
        fields[each.name] = (annotation, described)
    written = (config.__doc__ or "").startswith(f"{config.__name__}(")  # dataclass's own signature
    return create_model(config.__name__, __base__=_Derived, __doc__=None if written else config.__doc__, **fields)


def _default(each: dataclasses.Field[Any]) -> dict[str, Any]:
    if each.default is not dataclasses.MISSING:
        return {"default": each.default}
    if each.default_factory is not dataclasses.MISSING:
        return {"default_factory": each.default_factory}
    return {}


def plain(value: Any) -> Any:
    """A section, or a part of one, as the YAML would write it."""
    if isinstance(value, Section):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def field_meanings(config: type[Any]) -> dict[str, str]:
    """The string that stands under each field of a class, by field name."""
    meanings: dict[str, str] = {}
    for declared, following in pairwise(_statements(config)):
        if (
            isinstance(declared, ast.AnnAssign)
            and isinstance(declared.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            meanings[declared.target.id] = inspect.cleandoc(str(following.value.value))
    return meanings


def _statements(config: type[Any]) -> list[ast.stmt]:
    """What the source of a class says in it; nothing where the source is not there."""
    module = sys.modules[config.__module__]
    if module.__file__ is None:
        return []
    # Native code has its source beside it, under the module's own name.
    source = Path(module.__file__).with_name(f"{module.__name__.rpartition('.')[2]}.py")
    if not source.is_file():
        return []
    found = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ClassDef))
    return next((node.body for node in found if node.name == config.__name__), [])
