"""Configurations written to a folder, and what is wrong with them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from tidegate.config import Settings, load
from tidegate.config.flags import Overrides
from tidegate.errors import ConfigError

ENGINE = "upstreams: {chat: {replicas: [http://127.0.0.1:9]}}\n"


def settings_of(
    folder: Path, yaml: str = "", env: Mapping[str, str] | None = None, overrides: Overrides | None = None
) -> Settings:
    """Load ``yaml`` as ``tidegate.yaml`` of ``folder``; an empty one is no file."""
    if yaml:
        (folder / "tidegate.yaml").write_text(textwrap.dedent(yaml))
    return load(None, overrides or {}, env or {}, folder)


def problems_of(
    folder: Path, yaml: str = "", env: Mapping[str, str] | None = None, overrides: Overrides | None = None
) -> list[str]:
    """Every problem, with the folder taken off each place; [] when the configuration is sound."""
    try:
        settings_of(folder, yaml, env, overrides)
    except ConfigError as error:
        return [problem.replace(f"{folder}/", "") for problem in error.problems]
    return []
