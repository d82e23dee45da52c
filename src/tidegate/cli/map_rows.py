"""Rows of the parameter map, as commands make and show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tidegate.config.document import read_document
from tidegate.errors import ConfigError
from tidegate.load.figure_bar import figure_text
from tidegate.load.map_entry import MapEntry, flat, results_of
from tidegate.load.result import Result

DEFAULT_MAP = Path("parameter-map.jsonl")
NOT_A_PARAMETER = ("server", "quotas", "api_keys")
"""Sections with keys and addresses: they are no parameters, and the map is passed around."""
SHOWN = {
    "ok/s": "answered_per_s",
    "P50": "scheduled_e2e.p50",
    "P95": "scheduled_e2e.p95",
    "P99": "scheduled_e2e.p99",
    "errors": "error_rate",
    "shed": "shed_rate",
}
"""Times count from when a request was due."""

MapFile = Annotated[Path, typer.Option("--map", metavar="FILE", help="One row a line.")]
ConfigPath = Annotated[Path | None, typer.Option("--config", "-c", help="The tidegate.yaml that was, or is, in force.")]
Card = Annotated[str, typer.Option("--card", help="Accelerator or processor.")]
EngineName = Annotated[str, typer.Option("--engine", help="Such as vllm or llamacpp.")]
Version = Annotated[str, typer.Option("--engine-version")]
Note = Annotated[str, typer.Option("--note")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a trial ran on."""

    card: str
    engine: str
    version: str
    note: str = ""

    def entry(self, result: Result, params: Mapping[str, Any], model: str) -> MapEntry:
        """Of the first target."""
        target = result.targets[0]
        return MapEntry(
            date=result.began,
            model=model,
            card=self.card,
            engine=self.engine,
            version=self.version,
            workload=result.plan,
            params=dict(params),
            results=results_of([each for each in result.phases if each.target == target]),
            is_valid=not result.invalid,
            passed=result.passed,
            command=result.command,
            note=self.note,
        )


def parameters_of(config: Path | None) -> dict[str, Any]:
    """What a configuration says, without addresses and keys. Raises ConfigError."""
    if config is None:
        return {}
    document = read_document(config_text(config), str(config))
    if document.problems:
        raise ConfigError([problem.render(str(config)) for problem in document.problems])
    found = {key: value for key, value in document.values.items() if key not in NOT_A_PARAMETER}
    if isinstance(upstreams := found.get("upstreams"), dict):
        found["upstreams"] = {name: _without_addresses(upstream) for name, upstream in upstreams.items()}
    return found


def config_text(config: Path) -> str:
    """Raises ConfigError."""
    try:
        return config.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"{config}: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"{config}: no UTF-8 text"]) from None


def _without_addresses(upstream: Any) -> Any:
    """Replicas are this place's, and a diff for another must not bring them along."""
    if not isinstance(upstream, dict):
        return {}
    return {key: value for key, value in upstream.items() if key != "replicas"}


def print_rows(rows: Sequence[MapEntry]) -> None:
    """A table, a row each."""
    table = Table(box=None, header_style="bold")
    for name in ("id", "date", "model", "workload", *SHOWN, "parameters"):
        table.add_column(name, overflow="fold", min_width=8 if name == "id" else None)
    for row in rows:
        figures = [
            "–" if (value := row.value(figure)) is None else figure_text(figure, value) for figure in SHOWN.values()
        ]
        word = "" if row.is_valid else " (invalid)"
        params = ", ".join(f"{key}={value}" for key, value in flat(row.params))
        table.add_row(row.id, row.date[:10], row.model, row.workload + word, *figures, params)
    Console().print(table)
