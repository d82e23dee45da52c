"""Traffic of a file, as it was: its times and lengths. Its words are never read (SPEC S2-29)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tidegate.errors import ConfigError
from tidegate.load.records_file import PARQUET, read_records
from tidegate.load.workloads.abnormal_corpus import cases_by_code
from tidegate.load.workloads.traffic_row import TrafficRow

SHAPES = (
    "records of `tidegate load` (.parquet, .jsonl.gz), a log of `tidegate serve --log-requests`, or JSON lines with "
    "at, prompt_tokens, output_tokens and, if wanted, label, tenant, session"
)
LABEL = "replay"
UNKNOWN_OUTPUT_TOKENS = 64
"""Of requests that were not answered: nobody knows what they would have got."""
ROUTES = frozenset({"", "/v1/chat/completions", "/v1/completions"})
"""Of a log: what is asked elsewhere is no prompt."""
_LOGGED = re.compile(r"(\d{4}-\d\d-\d\dT\S+) request (id=.*)$")
_WRONG_IN_ITSELF = frozenset({"context_length_exceeded", *cases_by_code()})
"""Not those that depend on more than the prompt, such as ``exceeds_kv_pool``."""


def read_rows(path: Path) -> tuple[TrafficRow, ...]:
    """By time, the first at 0. Raises ConfigError with every line that is not understood (the first ten)."""
    if path.suffix == PARQUET or path.name.endswith(".gz"):
        rows = [*_of_records(path)]
    else:
        rows = _of_text(path)
    if not rows:
        raise ConfigError([f"{path}: no request in it; it may hold {SHAPES}"])
    start_s = min(row.at_s for row in rows)
    moved = (replace(row, at_s=row.at_s - start_s) for row in rows)
    return tuple(sorted(moved, key=lambda row: row.at_s))


def _of_records(path: Path) -> Iterator[TrafficRow]:
    for sample in read_records(path):
        yield TrafficRow(
            at_s=sample.due_at,
            prompt_tokens=max(1, sample.prompt_tokens or sample.meant_tokens),
            output_tokens=sample.output_tokens or sample.max_tokens or UNKNOWN_OUTPUT_TOKENS,
            label=sample.label or LABEL,
            tenant=sample.tenant,
            session=sample.session,
            code=_code(sample.code),
        )


def _code(code: str) -> str:
    """Only of requests that are wrong in themselves: load is not to be replayed as a fault of the client's."""
    return code if code in _WRONG_IN_ITSELF else ""


def _of_text(path: Path) -> list[TrafficRow]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {getattr(error, 'strerror', None) or error}"]) from error
    lines = [line for line in text.splitlines() if line.strip()]
    is_json = bool(lines) and lines[0].lstrip().startswith("{")
    read: Callable[[str], TrafficRow | None] = _of_json if is_json else _of_log
    rows, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = read(line)
        except (ValueError, TypeError, KeyError) as error:
            problems.append(f"{path}:{number}: no request: {_words(error)}")
            continue
        if row is not None:
            rows.append(row)
    if problems:
        raise ConfigError([*problems[:10], f"{path}: it may hold {SHAPES}"])
    return rows


def _words(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _of_json(line: str) -> TrafficRow:
    values: Any = json.loads(line)
    if not isinstance(values, dict):
        raise TypeError("each line is an object")
    return TrafficRow(
        at_s=_number(values, "at"),
        prompt_tokens=max(1, round(_number(values, "prompt_tokens"))),
        output_tokens=max(1, round(_number(values, "output_tokens"))),
        label=str(values.get("label") or LABEL),
        tenant=str(values.get("tenant") or ""),
        session=str(values.get("session") or ""),
        code=_code(str(values.get("code") or "")),
    )


def _number(values: dict[str, Any], name: str) -> float:
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number from 0 on, got {value!r}")
    return float(value)


def _of_log(line: str) -> TrafficRow | None:
    """None: the line says something else, or the request was none for a model."""
    logged = _LOGGED.search(line)
    if logged is None:
        return None
    pairs = dict(word.partition("=")[::2] for word in logged[2].split(" "))
    if pairs.get("route", "") not in ROUTES:
        return None
    return TrafficRow(
        at_s=datetime.fromisoformat(logged[1]).timestamp(),
        prompt_tokens=max(1, int(pairs.get("prompt_tokens", "1"))),
        output_tokens=int(pairs.get("output_tokens", "0")) or UNKNOWN_OUTPUT_TOKENS,
        label=pairs.get("class", LABEL),
        tenant=pairs.get("tenant", ""),
        code=_code(pairs.get("reason", "")),
    )
