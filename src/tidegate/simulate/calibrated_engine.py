"""An engine whose costs were fitted to a load run: what it is, and the file that keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tidegate.engines.step_model import PICOSECONDS_PER_MS, SimulatedConfig, StepModel
from tidegate.errors import ConfigError

KIND = "tidegate simulated engine"
COSTS = ("fixed", "prefill", "sequence", "context", "quadratic")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedEngine:
    config: SimulatedConfig
    overhead_s: float = 0.0
    """Between sending a request and the engine's having it (network, parsing, tokens): no step is held up by it."""


class Sent(msgspec.Struct, array_like=True, frozen=True):
    """One request of the run."""

    at: float
    """Seconds from the first."""
    prompt_tokens: int
    output_tokens: int
    max_tokens: int = 0
    """What it allowed; 0: it did not say."""
    label: str = ""
    tenant: str = ""


class EngineFile(msgspec.Struct, kw_only=True):
    """JSON. ``traffic`` is what the run sent, so that other policies and engines can be tried on it."""

    kind: str = KIND
    step_ms: dict[str, float]
    """By ``COSTS``: fixed, per prompt token, per sequence, per KV token read, per prompt token and earlier token."""
    quadratic_from_tokens: int
    max_sequences: int
    chunk_tokens: int
    kv_tokens: int
    context_tokens: int | None
    overhead_ms: float
    source: str
    """The records that it was fitted to."""
    errors: dict[str, float] = msgspec.field(default_factory=dict)
    """Relative, of the hold-out check: by metric and quantile, simulated against measured."""
    traffic: list[Sent] = msgspec.field(default_factory=list)

    @property
    def engine(self) -> CalibratedEngine:
        """Raises ConfigError for costs and sizes that no engine has."""
        step = StepModel(
            **{f"{name}_ps": round(self.step_ms.get(name, 0.0) * PICOSECONDS_PER_MS) for name in COSTS},
            quadratic_from_tokens=self.quadratic_from_tokens,
        )
        config = SimulatedConfig(
            step=step,
            kv_tokens=self.kv_tokens,
            max_sequences=self.max_sequences,
            chunk_tokens=self.chunk_tokens,
            context_tokens=self.context_tokens,
        )
        return CalibratedEngine(config=config, overhead_s=self.overhead_ms / 1e3)


def costs_ms(step: StepModel) -> dict[str, float]:
    """By ``COSTS``."""
    return {name: getattr(step, f"{name}_ps") / PICOSECONDS_PER_MS for name in COSTS}


def read_engine_file(path: Path) -> EngineFile:
    """Raises ConfigError for a file that is missing or no such file."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=EngineFile)
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror or error}"]) from error
    except msgspec.DecodeError as error:
        raise ConfigError([f"{path}: not a file of `tidegate simulate calibrate --out`: {error}"]) from error
    if found.kind != KIND:
        raise ConfigError([f"{path}: kind {found.kind!r}: expected {KIND!r}"])
    return found


def write_engine_file(path: Path, file: EngineFile) -> None:
    """Raises ConfigError where it can't be written."""
    content: Any = msgspec.json.format(msgspec.json.encode(file), indent=1)
    try:
        path.write_bytes(content + b"\n")
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror or error}"]) from error
