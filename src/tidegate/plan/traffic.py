"""Request lengths from a log or a trace; the form is recognised from the content.

- our request log: the lines of ``tidegate serve --log-requests``
- usage as JSON lines: ``prompt_tokens`` and ``completion_tokens`` (or ``output_tokens``), also inside ``usage``
- the Azure LLM inference traces: CSV with ``ContextTokens`` and ``GeneratedTokens``
- the Mooncake traces: JSON lines with ``input_length`` and ``output_length``

Only requests that were answered count: a line without both lengths, or with no output, is skipped and counted.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, TextIO

from tidegate.errors import ConfigError
from tidegate.simulate.quantile import quantile

REQUEST_LOG = "tidegate request log"
USAGE = "usage JSON lines"
AZURE = "Azure trace"
MOONCAKE = "Mooncake trace"
KNOWN = (
    "the request log of tidegate serve --log-requests, JSON lines with prompt_tokens and completion_tokens, "
    "Azure CSV, Mooncake JSON lines"
)

LENGTH_FACTOR = 1.2
"""max_model_len above the P99 of lengths (SPEC S3-52), a slot above the P95 (SPEC S0-19)."""

Lengths = tuple[int, int]
"""Prompt and output tokens of one request."""
_PAIR = re.compile(r"\b(prompt_tokens|output_tokens|outcome)=(\S+)")


@dataclass(frozen=True)
class Traffic:
    source: str
    form: str
    requests: tuple[Lengths, ...]
    skipped: int
    """Lines without lengths, or of requests without an answer."""

    @cached_property
    def prompts(self) -> list[int]:
        return sorted(prompt for prompt, _ in self.requests)

    @cached_property
    def outputs(self) -> list[int]:
        return sorted(output for _, output in self.requests)

    @cached_property
    def totals(self) -> list[int]:
        """Prompt and output together: what a request holds in KV at its end."""
        return sorted(prompt + output for prompt, output in self.requests)

    def max_model_len(self, block_tokens: int) -> int:
        """P99 of lengths × 1.2 (SPEC S3-52), in whole blocks."""
        return whole_blocks(quantile(self.totals, 0.99) * LENGTH_FACTOR, block_tokens)


def whole_blocks(tokens: float, block_tokens: int) -> int:
    """``tokens`` rounded up to a multiple of ``block_tokens``."""
    return max(1, ceil(tokens / block_tokens)) * block_tokens


def read_traffic(path: Path) -> Traffic:
    """The lengths in ``path``. Raises ConfigError for a form that is not known, or without an answered request."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return _read(file, str(path))
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror})"]) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError([f"{path}: not a text of lines ({error})"]) from None


def _read(file: TextIO, source: str) -> Traffic:
    head = file.readline()
    while head and not head.strip():
        head = file.readline()
    if "ContextTokens" in head:
        return _gathered(source, AZURE, map(_azure, csv.DictReader(file, fieldnames=next(csv.reader([head])))))
    lines = _chain(head, file)
    if not head.lstrip().startswith("{"):
        return _gathered(source, REQUEST_LOG, map(_request_log, lines))
    form = MOONCAKE if '"input_length"' in head else USAGE
    return _gathered(source, form, map(_json, lines))


def _chain(head: str, rest: Iterable[str]) -> Iterator[str]:
    yield head
    yield from rest


def _gathered(source: str, form: str, found: Iterable[Lengths | None]) -> Traffic:
    requests: list[Lengths] = []
    skipped = 0
    for lengths in found:
        if lengths is None or lengths[0] < 0 or lengths[1] <= 0:
            skipped += 1
        else:
            requests.append(lengths)
    if not requests:
        raise ConfigError([f"{source}: no answered request in it (read as {form}). Known forms: {KNOWN}"])
    return Traffic(source, form, tuple(requests), skipped)


def _azure(row: Mapping[str | Any, str | Any]) -> Lengths | None:
    return _whole(row.get("ContextTokens"), row.get("GeneratedTokens"))


def _request_log(line: str) -> Lengths | None:
    pairs = dict(_PAIR.findall(line))
    if pairs.get("outcome", "ok") != "ok":
        return None
    return _whole(pairs.get("prompt_tokens"), pairs.get("output_tokens"))


def _json(line: str) -> Lengths | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if value.get("outcome", "ok") != "ok":
        return None
    usage = value["usage"] if isinstance(value.get("usage"), dict) else value
    prompt = _first(usage, ("prompt_tokens", "input_tokens", "input_length"))
    return _whole(prompt, _first(usage, ("completion_tokens", "output_tokens", "output_length")))


def _first(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if name in value), None)


def _whole(prompt: Any, output: Any) -> Lengths | None:
    try:
        return int(prompt), int(output)
    except (TypeError, ValueError):
        return None
