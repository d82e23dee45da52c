"""The services that a load command names, and what they say of themselves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from tidegate.errors import ConfigError
from tidegate.load.target import Target
from tidegate.load.target_facts import TargetFacts, facts_of


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is sent with every request."""

    api_key_env: str | None = None
    headers: Sequence[str] = ()
    """``NAME: VALUE`` or ``NAME=VALUE``."""
    ca_file: str | None = None


def targets_of(
    urls: Sequence[str], credentials: Credentials, model: str | None, admin: str | None
) -> list[tuple[Target, TargetFacts]]:
    """``[NAME=]URL`` as targets, each asked for its model and its context. ``admin``: of the first one.

    Raises ConfigError: all that is wrong with the words first, then what the services say.
    """
    problems: list[str] = []
    headers = _headers(credentials, problems)
    named = [_named(text, problems) for text in urls]
    if len({name for name, _ in named}) < len(named):
        problems.append("two targets have one name; name them apart: a=URL b=URL")
    if problems:
        raise ConfigError(problems)
    targets = [
        Target(name=name, url=url, model=model or "", headers=headers, ca_file=credentials.ca_file)
        for name, url in named
    ]
    targets[0] = replace(targets[0], admin_url=admin)
    facts = asyncio.run(_facts(targets, model))
    return [(replace(target, model=each.model), each) for target, each in zip(targets, facts, strict=True)]


async def _facts(targets: Sequence[Target], model: str | None) -> list[TargetFacts]:
    asked = await asyncio.gather(*(facts_of(each.url, each, model) for each in targets), return_exceptions=True)
    problems = [line for each in asked if isinstance(each, ConfigError) for line in each.problems]
    if problems:
        raise ConfigError(problems)
    found = []
    for each in asked:
        if isinstance(each, BaseException):
            raise each
        found.append(each)
    return found


def _named(text: str, problems: list[str]) -> tuple[str, str]:
    """A name, and a URL that ends with /v1."""
    name, separator, rest = text.partition("=")
    url = rest if separator and "/" not in name else text
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound:
        problems.append(f"{text}: expected [NAME=]http://HOST:PORT/v1")
        return text, url
    if parts.username is not None or parts.password is not None:
        # It would stand in the report, in the records, and in the command that is shown for running it again.
        shown = parts.netloc.rpartition("@")[2]
        problems.append(f"{shown}: leave name and password out of the URL; give them with --header or --api-key-env")
    path = parts.path.rstrip("/")
    return (name if url != text else parts.netloc), f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def _headers(credentials: Credentials, problems: list[str]) -> tuple[tuple[str, str], ...]:
    found = []
    for text in credentials.headers:
        cut = min((at for at in (text.find(":"), text.find("=")) if at > 0), default=-1)
        if cut < 0 or "\n" in text or "\r" in text:
            problems.append(f"--header {text!r}: expected NAME: VALUE")
        else:
            found.append((text[:cut].strip().lower(), text[cut + 1 :].strip()))
    if credentials.api_key_env is not None:
        key = os.environ.get(credentials.api_key_env)
        if not key:
            problems.append(f"--api-key-env {credentials.api_key_env}: that variable is not set, or empty")
        found.append(("authorization", f"Bearer {key}"))
    return tuple(found)
