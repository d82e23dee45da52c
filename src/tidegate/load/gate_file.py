"""Gates by name or from a YAML file.

extends: acceptance        # or burst, or a list of them
bars:
  - figure: ttft.p95       # any figure, by its dotted name
    max: 2 s               # or min, or both; seconds, ms, min, %
    phase: soak            # a name or a kind; without it: every phase, the worst counts
    tenant: gold           # or label
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate.config.document import Document, read_document
from tidegate.config.problem import Problem, suggestion
from tidegate.errors import ConfigError
from tidegate.load.figure_bar import FigureBar
from tidegate.load.figure_name import FIGURE_NAMES, OF_A_PART
from tidegate.load.gate_rules import Gates, Rule, built_in

UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "%": 0.01}
_BAR_KEYS = {"figure", "max", "min", "phase", "label", "tenant", "name", "row", "required"}
_NUMBER = re.compile(r"\s*(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)\s*(\S*)\s*", flags=re.ASCII)


def find_gates(text: str) -> Gates:
    """``acceptance``, ``acceptance@ttft``, ``burst``, a file, or several with commas. Raises ConfigError."""
    known = built_in()
    found: Gates | None = None
    for name in filter(None, (part.strip() for part in text.split(","))):
        gates = known.get(name) or _from_path(name, known)
        found = gates if found is None else found + gates
    if found is None:
        raise ConfigError([f"--gates: say {', '.join(known)} or a file"])
    return found


def _from_path(name: str, known: Mapping[str, Gates]) -> Gates:
    path = Path(name)
    try:
        return read_gates(path.read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        told = f"--gates: {name} is none of {', '.join(known)}{suggestion(name, known)}, and no readable file: {why}"
        raise ConfigError([told]) from None


def read_gates(text: str, source: str) -> Gates:
    """Raises ConfigError with every mistake of the file, each with its place."""
    reader = _Reader(read_document(text, source), source)
    rules = reader.rules()
    if reader.document.problems:
        raise ConfigError([reader.rendered(problem) for problem in reader.document.problems])
    return Gates(source, rules)


def number_of(text: str) -> float | None:
    """``500 ms`` in seconds, ``0.5 %`` as a share; None: no number, or a unit that is not known."""
    match = _NUMBER.fullmatch(text)
    return float(match[1]) * UNITS[match[2]] if match is not None and match[2] in UNITS else None


@dataclass(slots=True)
class _Reader:
    document: Document
    source: str
    known: dict[str, Gates] = field(default_factory=built_in)

    def rules(self) -> tuple[Rule, ...]:
        values = self.document.values
        self.refuse_unknown(values, {"extends", "bars"}, ())
        rules = [rule for gates in self.extended(values.get("extends", [])) for rule in gates.rules]
        bars = values.get("bars", [])
        if not isinstance(bars, list):
            self.fail(("bars",), f"must be a list of bars, got {bars!r}")
            bars = []
        rules += [self.bar(bar, ("bars", index)) for index, bar in enumerate(bars)]
        if not rules and not self.document.problems:
            self.fail((), "no bar in it: give bars, or extends")
        return tuple(dict.fromkeys(rules))

    def extended(self, names: Any) -> list[Gates]:
        asked = names if isinstance(names, list) else [names]
        for name in asked:
            if not isinstance(name, str) or name not in self.known:
                hint = suggestion(str(name), self.known)
                self.fail(("extends",), f"must be of {', '.join(self.known)}, got {name!r}{hint}")
        return [self.known[name] for name in asked if isinstance(name, str) and name in self.known]

    def bar(self, bar: Any, path: tuple[str | int, ...]) -> FigureBar:
        if not isinstance(bar, dict):
            self.fail(path, f"must be a bar such as {{figure: ttft.p95, max: 2 s}}, got {bar!r}")
            return FigureBar(figure="")
        self.refuse_unknown(bar, _BAR_KEYS, path)
        words = {key: self.word(bar, key, path) for key in ("figure", "phase", "label", "tenant", "name", "row")}
        self.check_figure(words, path)
        most, least = self.number(bar, "max", path), self.number(bar, "min", path)
        if "max" not in bar and "min" not in bar:
            self.fail(path, "has no bound: give max, min or both")
        if most is not None and least is not None and least > most:
            self.fail((*path, "min"), f"is above max ({bar['max']})")
        is_required = bar.get("required", True)
        if not isinstance(is_required, bool):
            self.fail((*path, "required"), f"must be true or false, got {is_required!r}")
        return FigureBar(most=most, least=least, is_required=bool(is_required), place=self.place(path), **words)

    def check_figure(self, words: Mapping[str, str], path: tuple[str | int, ...]) -> None:
        figure = words["figure"]
        if figure not in FIGURE_NAMES:
            what = f"no figure is named {figure!r}" if figure else "say which figure, such as ttft.p95"
            self.fail(
                (*path, "figure") if figure else path, what + (suggestion(figure, FIGURE_NAMES) if figure else "")
            )
        elif figure not in OF_A_PART and (words["label"] or words["tenant"]):
            self.fail(path, f"{figure} is measured of whole phases, not by label or tenant")
        if words["label"] and words["tenant"]:
            self.fail(path, "give label or tenant: both together are not measured")

    def word(self, bar: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> str:
        value = bar.get(key, "")
        if not isinstance(value, str):
            self.fail((*path, key), f"must be text, got {value!r}")
            return ""
        return value

    def number(self, bar: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> float | None:
        value = bar.get(key)
        if value is None:
            if key in bar:
                self.fail((*path, key), "must be a number, got nothing")
            return None
        found = None if isinstance(value, bool) else number_of(str(value))
        if found is None:
            self.fail((*path, key), f"must be a number such as 2, 500 ms, 5 min or 0.5 %, got {value!r}")
        return found

    def refuse_unknown(self, values: Mapping[str, Any], known: set[str], path: tuple[str | int, ...]) -> None:
        for key in values:
            if key not in known:
                hint = suggestion(key, known)
                message = f"is not known here{hint}; known: {', '.join(sorted(known))}"
                self.document.problems.append(Problem((*path, key), message, at_key=True))

    def fail(self, path: tuple[str | int, ...], message: str) -> None:
        self.document.problems.append(Problem(path, message))

    def place(self, path: tuple[str | int, ...], of_key: bool = False) -> str:
        origin = self.document.origins.get(path)
        return origin.place(of_key) if origin else self.source

    def rendered(self, problem: Problem) -> str:
        return problem.render(self.place(problem.path, problem.at_key))
