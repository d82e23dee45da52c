"""Values from the command line: ``overrides`` for ``load``, and which flag set what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.config.origin import Kind, Origin, Path, dotted
from tidegate.errors import ConfigError

Overrides = Mapping[Path, object]

FLAGS: Mapping[Path, str] = {
    ("mode",): "--mode",
    ("server", "host"): "--host",
    ("server", "port"): "--port",
    ("server", "admin_host"): "--admin-host",
    ("server", "admin_port"): "--admin-port",
    ("server", "log_requests"): "--log-requests",
    ("upstreams",): "--upstream",
}
"""Flags with a name of their own; any other key is set by ``--set KEY=VALUE``."""


def flag_origin(path: Path) -> Origin:
    """How messages name the flag that set ``path``."""
    known = [flag for key, flag in FLAGS.items() if path[: len(key)] == key]
    return Origin(Kind.FLAG, known[0] if known else f"--set {dotted(path)}")


def path_from(key: str) -> Path:
    """``upstreams.chat.replicas[0].url`` as a path."""
    path: Path = ()
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", key):
        path = (*path, int(part[1:-1])) if part.startswith("[") else (*path, part)
    return path


def set_flags(assignments: Iterable[str]) -> dict[Path, object]:
    """``--set KEY=VALUE`` values, typed later by what stands at KEY. Raises ConfigError."""
    found: dict[Path, object] = {}
    for each in assignments:
        key, equals, value = each.partition("=")
        if not equals or not path_from(key):
            raise ConfigError([f"--set {each}: must be KEY=VALUE, such as --set server.port=9000"])
        found[path_from(key)] = value
    return found


def is_named(upstream: str) -> bool:
    """Whether an ``--upstream`` value is NAME=URL. A name may hold slashes (``org/model``), a URL an equals sign."""
    return "=" in upstream.partition("://")[0]


def upstream_flags(urls: Iterable[str]) -> dict[Path, object]:
    """``--upstream [NAME=]URL`` (repeatable; one name may have several). Raises ConfigError.

    Without a name the upstream is called ``default``. ``embedded`` in place of a URL starts the
    engine that comes with Tidegate.
    """
    upstreams: dict[str, dict[str, Any]] = {}
    for each in urls:
        name, url = each.split("=", 1) if is_named(each) else ("default", each)
        if url == "embedded":
            upstreams.setdefault(name, {})["engine"] = {"kind": "embedded"}
            continue
        if "://" not in url:
            raise ConfigError([f"--upstream {each}: must be [NAME=]URL, such as chat=http://127.0.0.1:8000"])
        upstreams.setdefault(name, {}).setdefault("replicas", []).append({"url": url})
    return {("upstreams",): upstreams} if upstreams else {}
