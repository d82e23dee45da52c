"""``tidegate explain request ID``: asks the running gateway why a request waited, moved or was refused."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import typer

from tidegate.cli.options import print_json
from tidegate.config import Settings
from tidegate.errors import ConfigError, ProtocolError, TidegateError
from tidegate.wire.fetch import Reply, fetch

TOKEN = "TIDEGATE_ADMIN_TOKEN"
"""Environment variable with the admin API's token, where it asks for one."""
TIMEOUT_S = 10.0


def explain_request(request_id: str | None, read: Callable[[], Settings], admin: str | None, as_json: bool) -> None:
    """Print the sentences of one request. Raises TidegateError when nothing can be told."""
    if not request_id:
        raise TidegateError("explain request: give the x-request-id of its response: tidegate explain request ID")
    url = (admin or _admin_url(read)).rstrip("/")
    answer = _ask(url, request_id)
    if as_json:
        print_json(answer)
        return
    for found in answer["requests"]:
        for sentence in found["explanation"]:
            typer.echo(sentence)


def _admin_url(read: Callable[[], Settings]) -> str:
    try:
        server = read().server
    except ConfigError as error:
        problem = "explain request: the configuration has problems, so name the admin API with --admin URL"
        raise ConfigError([problem, *error.problems]) from None
    host = "127.0.0.1" if server.admin_host in ("0.0.0.0", "::") else server.admin_host
    return f"http://{f'[{host}]' if ':' in host else host}:{server.admin_port}"


def _ask(url: str, request_id: str) -> dict[str, Any]:
    token = os.environ.get(TOKEN)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    target = f"{url}/admin/requests/{quote(request_id, safe='')}"
    try:
        reply = asyncio.run(fetch(target, headers=headers, timeout_s=TIMEOUT_S))
    except TimeoutError:
        raise TidegateError(f"explain request: {url} did not answer within {TIMEOUT_S:g} s") from None
    except (OSError, ValueError, ProtocolError) as error:
        raise TidegateError(
            f"explain request: no admin API at {url} ({error}); is tidegate serve running? --admin URL names another"
        ) from None
    return _read(reply, url)


def _read(reply: Reply, url: str) -> dict[str, Any]:
    try:
        answer = json.loads(reply.body)
        if reply.status == 200 and isinstance(answer["requests"], list):
            return dict(answer)
        message = str(answer["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = f"{url} answered {reply.status}, and not as Tidegate's admin API does"
    hint = f" (the environment variable {TOKEN} holds it)" if reply.status == 401 else ""
    raise TidegateError(f"explain request: {message}{hint}")
