"""Real traffic from a folder that the user names, or a generated look-alike.

The folder in the environment variable ``TIDEGATE_TRACES`` holds ``azure-2023/`` (the CSV files of
the Azure LLM inference trace 2023) and ``mooncake/`` (its JSON lines). Nothing of it is shipped.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tidegate.errors import ConfigError
from tidegate.simulate.arrivals import Arrival
from tidegate.simulate.lookalike import lookalike
from tidegate.simulate.streams import stream

FOLDER_VARIABLE = "TIDEGATE_TRACES"
MOONCAKE_TICK_MS = 3000
"""Its conversation trace is quantised to this; arrivals are spread uniformly inside a tick."""


@dataclass(frozen=True, slots=True)
class Trace:
    arrivals: list[Arrival]
    source: str


def load_trace(name: str, seed: int) -> Trace:
    """The trace ``name`` from the user's folder, else its look-alike of ``seed``; the source says which.

    Raises ConfigError when the folder is named and the file is missing or unreadable.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return Trace(lookalike(name, seed), f"generated look-alike of {name} (set {FOLDER_VARIABLE} for the real one)")
    relative, read = _FILES[name]
    path = Path(folder) / relative
    try:
        arrivals = read(path, seed)
    except FileNotFoundError:
        raise ConfigError([f"{FOLDER_VARIABLE}: {path} does not exist; unset it to use the look-alike"]) from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError([f"{path}: not the expected format of {name} ({error!r})"]) from error
    return Trace(arrivals, f"trace {relative}")


def _read_azure(path: Path, _seed: int) -> list[Arrival]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            (_seconds(row["TIMESTAMP"]), int(row["ContextTokens"]), int(row["GeneratedTokens"]))
            for row in csv.DictReader(file)
        ]
    start = min(at for at, _, _ in rows)
    return [Arrival(at - start, prompt, output, "") for at, prompt, output in rows]


def _seconds(timestamp: str) -> float:
    """Seven digits of a second, one more than datetime holds."""
    whole, _, fraction = timestamp.partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{fraction or 0}")


def _read_mooncake(path: Path, seed: int) -> list[Arrival]:
    rng = stream(seed, "mooncake/spread")
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    spread_ms = [row["timestamp"] + rng.uniform(0, MOONCAKE_TICK_MS) for row in rows]
    return [
        Arrival(at_ms / 1000, row["input_length"], row["output_length"], "", blocks=tuple(row["hash_ids"]))
        for at_ms, row in zip(spread_ms, rows, strict=True)
    ]


_FILES: dict[str, tuple[str, Callable[[Path, int], list[Arrival]]]] = {
    "azure-conv": ("azure-2023/AzureLLMInferenceTrace_conv.csv", _read_azure),
    "azure-code": ("azure-2023/AzureLLMInferenceTrace_code.csv", _read_azure),
    "mooncake": ("mooncake/conversation_trace.jsonl", _read_mooncake),
}
