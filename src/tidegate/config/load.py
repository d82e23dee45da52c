"""Reads every layer and gives ``Settings``, or all that is wrong with them at once.

Precedence, strongest first: what the admin API set, flags, ``TIDEGATE__SECTION__KEY``, the accepted aliases, the
YAML file, ``config/stability.json``, the preset that one of these names, defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from tidegate.config import environment
from tidegate.config.assemble import slot_plans
from tidegate.config.document import Document, read_document
from tidegate.config.flags import Overrides, flag_origin
from tidegate.config.origin import ADMIN_API, DEFAULT, Kind, Origin, Path, dotted
from tidegate.config.presets import lay_preset
from tidegate.config.problem import Problem
from tidegate.config.section import plain
from tidegate.config.settings import Provenance, Settings
from tidegate.config.slot_plan import fitted
from tidegate.config.stability import FILE as STABILITY_FILE
from tidegate.config.stability import read_stability
from tidegate.config.timeout_tree import contradictions
from tidegate.config.tree import Tree
from tidegate.config.validate import ROOT, check_values
from tidegate.errors import ConfigError

FILE = "tidegate.yaml"
DEV_OFF: tuple[Path, ...] = (
    ("shaping", "enabled"),
    ("limits", "adaptive", "enabled"),
    ("limits", "prefill", "enabled"),
    ("tail", "enabled"),
    ("ladder", "enabled"),
)
"""``mode: dev`` keeps the slots and nothing else that shapes or breaks (SPEC S0-13)."""


@dataclass(slots=True)
class _Gathered:
    """What the layers hold, before it is validated."""

    tree: Tree = field(default_factory=Tree)
    problems: list[Problem] = field(default_factory=list)
    unset: list[Path] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    file: FilePath | None = None

    def add(self, document: Document) -> None:
        self.problems += document.problems
        self.unset += document.unset
        self.tree.merge(document.values, document.origins)

    def put(self, path: Path, value: object, origin: Origin) -> None:
        try:
            self.tree.put(path, value, origin)
        except LookupError:
            self.problems.append(Problem(path, "there is no such key", place=origin.place()))


def load(
    path: FilePath | None,
    overrides: Overrides,
    env: Mapping[str, str],
    folder: FilePath = FilePath(),
    live: Overrides | None = None,
) -> Settings:
    """The configuration from ``path``, or from ``tidegate.yaml`` in ``folder``, or from none.

    ``live``: what an operator set while the service runs (``config.live``).
    Raises ConfigError with every problem, each as ``file:line:col: section.key: message``.
    """
    gathered = _Gathered()
    gathered.tree.values = plain(Settings())
    _read_files(gathered, path, env, folder)
    _read_environment(gathered, env)
    for key, value in overrides.items():
        _override(gathered, key, value)
    _read_prefix_caching(gathered, env)
    for key, value in (live or {}).items():
        gathered.put(key, value, ADMIN_API)
    lay_preset(gathered.tree)
    _apply_mode(gathered)
    checked = check_values(gathered.tree, env, gathered.unset)
    problems = gathered.problems + checked.problems
    if problems or checked.settings is None:
        raise ConfigError(_rendered(problems, gathered.tree))
    gathered.warnings += _advice(checked.settings, gathered.tree)
    return checked.settings.knows(Provenance(gathered.tree.origins, tuple(gathered.warnings), gathered.file))


def _advice(settings: Settings, tree: Tree) -> list[str]:
    """What works, but not as its author may think."""
    lines = [line for plan in slot_plans(settings) for line in fitted(plan, "clamp") if settings.slots.enabled]
    high = ("shaping", "gpu_utilization_high_percent")
    set_by = tree.origins.get(high)
    if set_by is not None and set_by.kind is not Kind.PRESET and not settings.shaping.pacing.enabled:
        lines.append(f"{set_by.place()}: {dotted(high)}: no effect while shaping.pacing is off")
    return [*lines, *contradictions(settings)]


def _read_files(gathered: _Gathered, path: FilePath | None, env: Mapping[str, str], folder: FilePath) -> None:
    gathered.file = path if path is not None else folder / FILE if (folder / FILE).is_file() else None
    stability = (gathered.file.parent if gathered.file is not None else folder) / STABILITY_FILE
    if stability.is_file():
        gathered.add(read_stability(_text(stability), str(stability)))
    if gathered.file is not None:
        document = read_document(_text(gathered.file), str(gathered.file))
        _expand_short_forms(document)
        environment.expand(document, env, ROOT)
        gathered.add(document)


def _text(path: FilePath) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: not UTF-8 text: {error.reason} at byte {error.start}"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None


def _expand_short_forms(document: Document) -> None:
    """A replica that is a bare URL and an engine that is a bare word, written out."""
    upstreams = document.values.get("upstreams")
    for alias, upstream in upstreams.items() if isinstance(upstreams, dict) else ():
        if not isinstance(upstream, dict):
            continue
        if isinstance(upstream.get("engine"), str):
            _wrap(document, ("upstreams", alias, "engine"), upstream, "engine", "kind")
        replicas = upstream.get("replicas")
        for index, replica in enumerate(replicas if isinstance(replicas, list) else ()):
            if isinstance(replica, str):
                _wrap(document, ("upstreams", alias, "replicas", index), replicas, index, "url")


def _wrap(document: Document, path: Path, holder: Any, part: str | int, key: str) -> None:
    holder[part] = {key: holder[part]}
    document.origins[(*path, key)] = document.origins[path]


def _read_environment(gathered: _Gathered, env: Mapping[str, str]) -> None:
    for each in list(environment.assignments(env, gathered.tree, ROOT)):
        gathered.put(each.path, environment.typed(each.text, each.path, ROOT), each.origin)
    gathered.warnings += environment.unknown_aliases(env)


def _read_prefix_caching(gathered: _Gathered, env: Mapping[str, str]) -> None:
    found = list(environment.prefix_caching(env, gathered.tree))
    for each in found:
        gathered.put(each.path, environment.typed(each.text, each.path, ROOT), each.origin)
    if env.get(environment.PREFIX_CACHING) and not found:
        gathered.warnings.append(
            f"environment {environment.PREFIX_CACHING}: no effect, Tidegate starts no engine here; "
            "give the engine itself --enable-prefix-caching"
        )


def _override(gathered: _Gathered, path: Path, value: object) -> None:
    origin = flag_origin(path)
    if isinstance(value, dict) and len(path) == 1:
        held = Tree()
        held.put(path, value, origin)
        gathered.tree.merge(held.values, held.origins)
    else:
        typed = environment.typed(value, path, ROOT) if isinstance(value, str) else value
        gathered.put(path, typed, origin)


def _apply_mode(gathered: _Gathered) -> None:
    if gathered.tree.values.get("mode") != "dev":
        return
    for path in DEV_OFF:
        set_by = gathered.tree.origins.get(path)
        if set_by is not None and gathered.tree.get(path) is True:
            gathered.warnings.append(f"{set_by.place()}: {'.'.join(map(str, path))}: true has no effect in mode: dev")
        gathered.put(path, False, Origin(Kind.MODE, "mode: dev"))


def _rendered(problems: list[Problem], tree: Tree) -> list[str]:
    """Those of files first, in the order of their lines, then those of variables and flags."""
    lines = [(_sort_key(each, tree), _line(each, tree)) for each in problems]
    return list(dict.fromkeys(line for _, line in sorted(lines, key=lambda pair: pair[0])))


def _line(problem: Problem, tree: Tree) -> str:
    origin = _nearest(problem.path, tree)
    is_own = problem.path in tree.origins
    # A key that is missing has no place of its own: the key that it is missing under has.
    place = origin.place(of_key=problem.at_key or not is_own)
    shown = problem if origin.raw is None else problem.without_value(origin.raw)
    return shown.render(place, origin.written_as if is_own and origin.written_as else None)


def _sort_key(problem: Problem, tree: Tree) -> tuple[bool, str, int, int]:
    origin = _nearest(problem.path, tree)
    if problem.place:
        at = re.search(r":(\d+):(\d+)$", problem.place)
        line, column = (int(at[1]), int(at[2])) if at else (0, 0)
        return False, problem.place.removesuffix(at[0] if at else ""), line, column
    return origin.kind in (Kind.ALIAS, Kind.ENV, Kind.FLAG, Kind.API), origin.source, origin.line, origin.column


def _nearest(path: Path, tree: Tree) -> Origin:
    while path:
        if path in tree.origins:
            return tree.origins[path]
        path = path[:-1]
    return DEFAULT
