"""A comparison as pictures in one file that needs nothing else: HTML with tables, or one SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from tidegate.errors import ConfigError
from tidegate.simulate import charts
from tidegate.simulate.canvas import Canvas
from tidegate.simulate.comparison import Cell, Comparison

KINDS = (".html", ".svg")
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:#1b1f24;max-width:1480px;margin:24px auto;padding:0 20px}"
    "main{display:flex;flex-wrap:wrap;gap:20px}"
    "svg{border:1px solid #d9dde3;border-radius:6px;max-width:100%;height:auto}"
    "table{border-collapse:collapse;margin:8px 0 28px}td,th{padding:3px 12px;border-bottom:1px solid #d9dde3;"
    "text-align:right}td:first-child,th:first-child{text-align:left}.note{color:#57606a}"
)
NOTE = "Simulated: step times come from a model of the engine; no engine and no GPU was used."

Figure = Callable[[Mapping[str, Any]], float | None]


def check_kind(path: Path) -> None:
    """Raises ConfigError for a file that is neither HTML nor SVG, before anything has run."""
    if path.suffix.lower() not in KINDS:
        raise ConfigError([f"--plot {path}: expected a name that ends in {' or '.join(KINDS)}"])


def write(comparison: Comparison, path: Path, columns: Mapping[str, Callable[[Mapping[str, Any]], str]]) -> None:
    """Raises ConfigError when the file can't be written. ``columns``: the figures of the table, by name."""
    pictures = [canvas for canvas in _canvases(comparison) if canvas is not None]
    text = _svg(pictures, comparison) if path.suffix.lower() == ".svg" else _html(pictures, comparison, columns)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"--plot {path}: {error.strerror}"]) from error


def _canvases(comparison: Comparison) -> list[Canvas | None]:
    found = [] if len(comparison.scenarios) == 1 else _by_load(comparison)
    found.append(_frontier(comparison))
    for scenario in comparison.scenarios:
        cells = [*comparison.of_scenario(scenario)]
        found += [_goodput(scenario, cells), _lengths(scenario, cells), _course(scenario, cells)]
    return found


def _by_load(comparison: Comparison) -> list[Canvas | None]:
    names = {
        "In their SLO, of requests": lambda row: row["goodput_requests"],
        "In their SLO, of tokens": lambda row: row["goodput_tokens"],
        "Errors, of requests": lambda row: row["errors"]["rate"],
    }
    if any(cell.load is None for cell in comparison.cells):
        return []
    loads = [cell.load for cell in comparison.cells if cell.load is not None]
    x = charts.Axis.around("load (the number after the @)", loads)
    return [_load_lines(comparison, f"{title}, by load", x, figure) for title, figure in names.items()]


def _load_lines(comparison: Comparison, title: str, x: charts.Axis, figure: Figure) -> Canvas:
    series = {
        policy: sorted((cell.load or 0.0, figure(cell.figures) or 0.0) for cell in comparison.of_policy(policy))
        for policy in comparison.policies
    }
    return charts.lines(title, x, charts.share_axis("share of offered"), series)


def _frontier(comparison: Comparison) -> Canvas | None:
    """Two kinds of requests with objectives of their own: what is given to one is taken from the other."""
    if len(comparison.objectives) != 2:
        return None
    strict, relaxed = sorted(comparison.objectives, key=lambda label: comparison.objectives[label])
    x, y = (charts.share_axis(_objective(label, comparison)) for label in (strict, relaxed))
    series = {
        policy: [
            (cell.figures["classes"][strict]["in_slo_rate"], cell.figures["classes"][relaxed]["in_slo_rate"])
            for cell in comparison.of_policy(policy)
        ]
        for policy in comparison.policies
    }
    return charts.points(f"Frontier: {strict} against {relaxed}", x, y, series)


def _objective(label: str, comparison: Comparison) -> str:
    return f"{label} in SLO (TTFT {comparison.objectives[label]:g} s)"


def _goodput(scenario: str, cells: list[Cell]) -> Canvas:
    series = {
        cell.policy: [cell.figures["goodput_requests"], cell.figures["goodput_tokens"], cell.figures["errors"]["rate"]]
        for cell in cells
    }
    groups = ["in SLO, requests", "in SLO, tokens", "errors"]
    return charts.bars(f"{scenario}: goodput and errors", charts.share_axis("share of offered"), groups, series)


def _lengths(scenario: str, cells: list[Cell]) -> Canvas:
    lengths = [*cells[0].figures["prompt_lengths"]]
    series = {cell.policy: [cell.figures["prompt_lengths"][name]["in_slo_rate"] for name in lengths] for cell in cells}
    return charts.bars(f"{scenario}: in SLO by tokens of prompt", charts.share_axis("share of bucket"), lengths, series)


def _course(scenario: str, cells: list[Cell]) -> Canvas | None:
    series = {
        cell.policy: [
            ((index + 0.5) * cell.course.slice_s, tail_s)
            for index, tail_s in enumerate(cell.course.tails_s)
            if tail_s is not None and tail_s > 0
        ]
        for cell in cells
    }
    series = {name: found for name, found in series.items() if found}
    if not series:
        return None
    times, tails = ([point[axis] for found in series.values() for point in found] for axis in (0, 1))
    y = charts.Axis.seconds("P95 TTFT (s), unanswered requests at the time they gave up", tails)
    return charts.lines(f"{scenario}: over time", charts.Axis("seconds", 0.0, max(times)), y, series, has_dots=False)


def _svg(pictures: list[Canvas], comparison: Comparison) -> str:
    head = Canvas(charts.WIDTH, 56, comparison.title)
    head.text((20, 26), comparison.title, size=17, is_bold=True)
    head.text((20, 46), f"{NOTE} {_seeds(comparison)}", size=11)
    placed, y = [head.svg((0, 0))], head.height
    for picture in pictures:
        placed.append(picture.svg((0, y)))
        y += picture.height
    size = f'width="{charts.WIDTH}" height="{y}" viewBox="0 0 {charts.WIDTH} {y}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>' + "".join(placed) + "</svg>\n"


def _html(
    pictures: list[Canvas], comparison: Comparison, columns: Mapping[str, Callable[[Mapping[str, Any]], str]]
) -> str:
    tables = "".join(_table(scenario, comparison, columns) for scenario in comparison.scenarios)
    drawn = "".join(picture.svg() for picture in pictures)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(comparison.title)}</title>'
        f"<style>{STYLE}</style><h1>{escape(comparison.title)}</h1>"
        f'<p class="note">{NOTE} {_seeds(comparison)} Traffic: {escape(comparison.source)}.</p>'
        f"<main>{drawn}</main>{tables}</html>\n"
    )


def _seeds(comparison: Comparison) -> str:
    return f"Medians over {len(comparison.seeds)} seed(s)."


def _table(scenario: str, comparison: Comparison, columns: Mapping[str, Callable[[Mapping[str, Any]], str]]) -> str:
    heads = "".join(f"<th>{escape(name)}" for name in ("policy", *columns))
    rows = [
        f"<tr><td>{escape(cell.policy)}" + "".join(f"<td>{escape(show(cell.figures))}" for show in columns.values())
        for cell in comparison.of_scenario(scenario)
    ]
    return f"<h2>{escape(scenario)}</h2><table><tr>{heads}{''.join(rows)}</table>"
