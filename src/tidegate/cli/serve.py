"""``tidegate serve``: the gateway in front of your engines, or in front of one of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Annotated
from urllib.parse import urlsplit

import typer

from tidegate.cli.log_lines import LogLines
from tidegate.cli.options import ConfigFile, Sets, Upstreams, configured
from tidegate.cli.replicas import model_name
from tidegate.cli.serving import Serving
from tidegate.config import Settings
from tidegate.config.flags import Overrides, is_named
from tidegate.config.upstreams import Replica
from tidegate.gateway.composition import endpoint_of

EMBEDDED = "smollm2=embedded"
"""What is served when no upstream is configured: the engine and the small model that come with Tidegate."""


def serve(  # noqa: PLR0913, PLR0917 - a parameter is an option
    config: ConfigFile = None,
    upstream: Upstreams = None,
    host: Annotated[str | None, typer.Option(help="Address of the OpenAI API.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the OpenAI API; 0 takes any free one.")] = None,
    admin_host: Annotated[str | None, typer.Option(help="Address of metrics and admin API.")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Port of metrics and admin API.")] = None,
    mode: Annotated[str | None, typer.Option(help="production, or dev: slots only.")] = None,
    log_requests: Annotated[bool | None, typer.Option("--log-requests", help="One log line per request.")] = None,
    sets: Sets = None,
) -> None:
    """Run the gateway.

    Without an upstream it starts the small engine and model that come with it.
    SIGHUP or a saved file reloads the configuration; Ctrl-C ends it after running requests, twice at once.
    """
    flags = {
        "server__host": host,
        "server__port": port,
        "server__admin_host": admin_host,
        "server__admin_port": admin_port,
        "server__log_requests": log_requests,
        "mode": mode,
    }

    named = asyncio.run(named_upstreams(upstream or ()))

    def read_config(live: Overrides) -> Settings:
        settings = configured(config, named, sets, live, **flags)
        return settings if settings.upstreams else configured(config, [EMBEDDED], sets, live, **flags)

    raise typer.Exit(asyncio.run(run(read_config)))


async def named_upstreams(urls: Sequence[str]) -> list[str]:
    """``--upstream`` values, where a bare URL is named after the model that the engine there serves.

    Clients can then go on asking for the model they know. Raises EngineError when it cannot be told.
    """
    return [each if is_named(each) else await _named(each) for each in urls]


async def _named(url: str) -> str:
    if url == EMBEDDED.partition("=")[2]:
        return EMBEDDED
    if urlsplit(url).scheme not in ("http", "https"):
        return url
    replica = Replica(url=url)
    name = await model_name(endpoint_of(replica, url, os.environ).address())
    return f"{name}={url}"


async def run(read_config: Callable[[Overrides], Settings]) -> int:
    """Serve until a signal; the exit status. Raises TidegateError when it cannot start."""
    return await Serving(read_config, LogLines().say).run()
