"""``tidegate explain request ID``: asks the running gateway why a request waited, moved or was refused."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import typer

from tidegate.cli.admin_api import AdminApi
from tidegate.cli.options import print_json
from tidegate.config import Settings
from tidegate.errors import TidegateError


def explain_request(request_id: str | None, read: Callable[[], Settings], admin: str | None, as_json: bool) -> None:
    """Print the sentences of one request. Raises TidegateError when nothing can be told."""
    if not request_id:
        raise TidegateError("explain request: give the x-request-id of its response: tidegate explain request ID")
    api = AdminApi("explain request", admin, read)
    answer = api.ask(f"/admin/requests/{quote(request_id, safe='')}", "requests")
    if as_json:
        print_json(answer)
        return
    for found in answer["requests"]:
        for sentence in found["explanation"]:
            typer.echo(sentence)
