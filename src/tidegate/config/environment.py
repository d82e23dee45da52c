"""Values from environment variables: ``TIDEGATE__SECTION__KEY``, the accepted aliases, and ``${NAME}`` in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.config.document import Document, scalar
from tidegate.config.origin import Kind, Origin, Path
from tidegate.config.parameters import Shape
from tidegate.config.problem import Problem, suggestion
from tidegate.config.tree import Tree, leaves

PREFIX = "TIDEGATE__"
ALIASES: Mapping[str, Path] = {
    "VOLC_STABILITY_MODE": ("mode",),
    "VOLC_MEMORY_SLOT_SIZE": ("slots", "slot_size_mib"),
    "VOLC_BUFFER_QUEUE_SIZE": ("shaping", "queue", "max_requests"),
    "VOLC_PRIORITY_THRESHOLD": ("shaping", "long_threshold_tokens"),
    "VOLC_GPU_UTILIZATION_HIGH": ("shaping", "gpu_utilization_high_percent"),
}
"""Parameter names of the middleware that the requirements describe (SPEC Appendix A, C26)."""
PREFIX_CACHING = "VLLM_ENABLE_PREFIX_CACHING"
"""Goes to every engine that Tidegate starts; vLLM itself knows only the flag (SPEC S0-82, C24)."""
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One value from outside the file."""

    path: Path
    text: str
    origin: Origin


def assignments(env: Mapping[str, str], tree: Tree, root: Shape) -> Iterator[Assignment]:
    """Aliases first, then ``TIDEGATE__…``, which win. An empty variable counts as unset."""
    for name, path in ALIASES.items():
        if env.get(name):
            yield Assignment(path, env[name], Origin(Kind.ALIAS, name))
    for name in sorted(env):
        if name.startswith(PREFIX) and env[name]:
            yield Assignment(path_of(name, tree, root), env[name], Origin(Kind.ENV, name))


def prefix_caching(env: Mapping[str, str], tree: Tree) -> Iterator[Assignment]:
    """The variable for every engine that Tidegate starts, unless a stronger layer says otherwise."""
    upstreams = tree.get(("upstreams",))
    for alias, upstream in upstreams.items() if isinstance(upstreams, dict) and env.get(PREFIX_CACHING) else ():
        path = ("upstreams", alias, "engine", "prefix_caching")
        set_by = tree.origins.get(path)
        is_stronger = set_by is not None and set_by.kind in (Kind.ENV, Kind.FLAG)
        if isinstance(upstream, dict) and isinstance(upstream.get("engine"), dict) and not is_stronger:
            yield Assignment(path, env[PREFIX_CACHING], Origin(Kind.ALIAS, PREFIX_CACHING))


def path_of(name: str, tree: Tree, root: Shape) -> Path:
    """``TIDEGATE__UPSTREAMS__CHAT__REPLICAS__0__URL`` as a path.

    Names the user chose are found whatever their case and signs: ``QWEN_7B`` is ``qwen-7b``.
    """
    path: Path = ()
    for part in name.removeprefix(PREFIX).split("__"):
        here = root.at(path)
        if here is not None and here.is_list() and part.isdecimal():
            path = (*path, int(part))
            continue
        below = tree.get(path)
        known = [*(below if isinstance(below, dict) else ()), *(here.keys() if here is not None else ())]
        path = (*path, next((key for key in known if _plain(key) == _plain(part)), part.lower()))
    return path


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", str(name).lower())


def typed(text: str, path: Path, root: Shape) -> Any:
    """The text as the type that stands at ``path``: text stays text, the rest is read as YAML."""
    here = root.at(path)
    return text if here is not None and here.takes_text() else scalar(text)


def expand(document: Document, env: Mapping[str, str], root: Shape) -> None:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in the document's texts; unset names become problems."""
    held = Tree()
    held.values, held.origins = document.values, document.origins
    for path, text in list(leaves(document.values)):
        if isinstance(text, str) and "${" in text:
            _expand_one(document, held, path, text, env, root)


def _expand_one(document: Document, held: Tree, path: Path, text: str, env: Mapping[str, str], root: Shape) -> None:
    def value_of(match: re.Match[str]) -> str:
        name, fallback = match[1], match[2]
        if env.get(name) or fallback is not None:
            return env.get(name) or fallback
        document.problems.append(
            Problem(path, f"environment variable {name} is not set (set it, or write ${{{name}:-default}})")
        )
        document.unset.append(path)
        return ""

    origin = held.origins[path].with_raw(text)
    held.put(path, typed(_REFERENCE.sub(value_of, text), path, root), origin)


def unknown_aliases(env: Mapping[str, str]) -> list[str]:
    """Warnings for VOLC_ variables that mean nothing here."""
    return [
        f"environment {name}: not known, ignored{suggestion(name, ALIASES)}"
        for name in sorted(env)
        if name.startswith("VOLC_") and name not in ALIASES
    ]
