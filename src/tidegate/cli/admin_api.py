"""The admin API of a running ``tidegate serve``, as commands ask it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

from tidegate.config import Settings
from tidegate.errors import ConfigError, ProtocolError, TidegateError
from tidegate.wire.fetch import Reply, fetch

TOKEN = "TIDEGATE_ADMIN_TOKEN"
"""Environment variable with the admin API's token, where it asks for one."""
TIMEOUT_S = 10.0


class AdminApi:
    """``command`` begins every message; ``url`` None: where the configuration that ``read`` gives has it."""

    def __init__(self, command: str, url: str | None, read: Callable[[], Settings]) -> None:
        self._command = command
        self.url = (url or self._configured(read)).rstrip("/")

    def _configured(self, read: Callable[[], Settings]) -> str:
        try:
            server = read().server
        except ConfigError as error:
            problem = f"{self._command}: the configuration has problems, so name the admin API with --admin URL"
            raise ConfigError([problem, *error.problems]) from None
        host = "127.0.0.1" if server.admin_host in ("0.0.0.0", "::") else server.admin_host
        return f"http://{f'[{host}]' if ':' in host else host}:{server.admin_port}"

    def ask(
        self, path: str, key: str, *, method: str = "GET", body: object = None, also: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        """The JSON of an answer with status 200, or one of ``also``, that has ``key``. Raises TidegateError."""
        token = os.environ.get(TOKEN)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        sent = b"" if body is None else json.dumps(body).encode()
        try:
            asked = fetch(f"{self.url}{path}", method=method, headers=headers, body=sent, timeout_s=TIMEOUT_S)
            reply = asyncio.run(asked)
        except TimeoutError:
            raise TidegateError(f"{self._command}: {self.url} did not answer within {TIMEOUT_S:g} s") from None
        except (OSError, ValueError, ProtocolError) as error:
            raise TidegateError(
                f"{self._command}: no admin API at {self.url} ({error}); is tidegate serve running? "
                "--admin URL names another"
            ) from None
        return self._read(reply, key, (200, *also))

    def _read(self, reply: Reply, key: str, statuses: tuple[int, ...]) -> dict[str, Any]:
        try:
            answer = json.loads(reply.body)
            if reply.status in statuses and key in answer:
                return dict(answer)
            message = str(answer["error"]["message"])
        except (ValueError, KeyError, TypeError):
            message = f"{self.url} answered {reply.status}, and not as Tidegate's admin API does"
        hint = f" (the environment variable {TOKEN} holds it)" if reply.status == 401 else ""
        raise TidegateError(f"{self._command}: {message}{hint}")
