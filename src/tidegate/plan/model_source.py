"""Which model a name on the command line means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tidegate.errors import ConfigError
from tidegate.plan.gguf_header import is_gguf
from tidegate.plan.gguf_model import read_gguf
from tidegate.plan.gpus import GIB
from tidegate.plan.hf_config import read_config
from tidegate.plan.known_models import known_model, unknown_model
from tidegate.plan.model import Model


def find_model(name: str, weight_dtype: str | None = None, weights_gib: float | None = None) -> Model:
    """A GGUF file, a ``config.json``, its folder, or a preset.

    ``weight_dtype`` counts the weights in that format, ``weights_gib`` takes their size as given. Raises ConfigError.
    """
    model = _found(name, weight_dtype)
    if weights_gib is not None:
        weights = replace(model.weights, total_bytes=int(weights_gib * GIB))
        notes = tuple(note for note in model.notes if not note.startswith("weights:"))
        return replace(model, weights=weights, weight_format="as given", notes=notes)
    if problems := [f"{model.source}: {note}" for note in model.notes if note.startswith("weights:")]:
        raise ConfigError(problems)
    return model


def _found(name: str, weight_dtype: str | None) -> Model:
    path = Path(name).expanduser()
    if path.is_dir():
        path /= "config.json"
        if not path.is_file():
            raise ConfigError([f"{name}: no config.json in this folder"])
    if path.is_file():
        if not is_gguf(path):
            return read_config(path, weight_dtype)
        if weight_dtype is not None:
            raise ConfigError([f"{name}: a GGUF file holds its weights as they are; --weight-dtype has no meaning"])
        return read_gguf(path)
    if (preset := known_model(name, weight_dtype)) is not None:
        return preset
    raise unknown_model(name)
