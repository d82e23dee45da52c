"""Parameters of a running gateway, changed for a trial and put back as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.cli.admin_api import AdminApi
from tidegate.config.origin import ADMIN_API
from tidegate.errors import ConfigError

PATH = "/admin/config"


class LiveParameters:
    """A context manager: what it finds, it leaves, whatever happens between."""

    def __init__(self, api: AdminApi, keys: list[str]) -> None:
        """``keys``: dotted names that will be set. Raises TidegateError."""
        held = api.ask(PATH, "values")
        ours = {key for key, origin in held["origins"].items() if origin == ADMIN_API.place()}
        # None takes a value back; one that an operator had set this way is his again.
        self._before = {key: held["values"].get(key) if key in ours else None for key in keys}
        self._api = api

    def __enter__(self) -> LiveParameters:
        return self

    def __exit__(self, *_: object) -> None:
        self.set(self._before)

    def set(self, values: Mapping[str, Any]) -> None:
        """Raises ConfigError with what is wrong with them; nothing is changed then."""
        told = self._api.ask(f"{PATH}?dry_run=0", "problems", method="PATCH", body=dict(values), also=(422,))
        if told["problems"]:
            raise ConfigError([f"--try: {problem}" for problem in told["problems"]])
