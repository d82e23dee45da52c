"""What no single value can get wrong: keys that contradict each other, files and variables that are not there."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path as FilePath

from tidegate.config.assemble import replica_names, slot_plans
from tidegate.config.engine_checks import engine_problems
from tidegate.config.ladder_checks import ladder_problems
from tidegate.config.origin import Path
from tidegate.config.pool_checks import pool_problems
from tidegate.config.problem import Problem, suggestion
from tidegate.config.settings import Settings
from tidegate.config.shaping_checks import shaping_problems
from tidegate.config.upstreams import Replica, Upstream
from tidegate.policy.abnormal import OnOverlength


def cross_check(settings: Settings, env: Mapping[str, str]) -> list[Problem]:
    """Every contradiction in values that are sound one by one."""
    return [
        *_server(settings),
        *_api_keys(settings),
        *_upstreams(settings, env),
        *_slots(settings),
        *shaping_problems(settings),
        *ladder_problems(settings),
        *pool_problems(settings),
    ]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a port bound to ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _server(settings: Settings) -> Iterator[Problem]:
    server = settings.server
    if server.port and server.port == server.admin_port and server.host == server.admin_host:
        yield Problem(
            ("server", "admin_port"),
            f"is the data port too ({server.port}); give each its own",
            also=(("server", "port"), ("server", "host"), ("server", "admin_host")),
        )
    if not is_loopback(server.host) and not server.api_keys:
        yield Problem(
            ("server", "host"),
            f"{server.host} can be reached from other machines and server.api_keys is empty; "
            "add a key, or bind 127.0.0.1",
            also=(("server", "api_keys"),),
        )
    if not is_loopback(server.admin_host) and not server.admin_tokens:
        yield Problem(
            ("server", "admin_host"),
            f"{server.admin_host} can be reached from other machines and server.admin_tokens is empty; "
            "add the SHA-256 of a token, or bind 127.0.0.1",
            also=(("server", "admin_tokens"),),
        )


def _api_keys(settings: Settings) -> Iterator[Problem]:
    keys = settings.server.api_keys
    yield from _twice(((("server", "api_keys", i, "name"), key.name) for i, key in enumerate(keys)), "API key name")
    yield from _twice(((("server", "api_keys", i, "sha256"), key.sha256) for i, key in enumerate(keys)), "API key")


def _twice(named: Iterable[tuple[Path, str]], what: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for path, name in named:
        if name in seen:
            yield Problem(path, f"the {what} {name[:40]!r} is given twice")
        seen.add(name)


def _upstreams(settings: Settings, env: Mapping[str, str]) -> Iterator[Problem]:
    named: list[tuple[Path, str]] = []
    for alias, upstream in settings.upstreams.items():
        here: Path = ("upstreams", alias)
        if not upstream.replicas and upstream.engine is None:
            yield Problem(
                here,
                "has neither replicas nor an engine; give one URL under replicas",
                also=((*here, "replicas"), (*here, "engine")),
            )
        yield from _images(settings, alias)
        yield from _overlength(settings, alias)
        yield from _tokenizer(upstream, here)
        urls = (((*here, "replicas", index, "url"), each.url) for index, each in enumerate(upstream.replicas))
        yield from _twice(urls, "replica")
        for index, replica in enumerate(upstream.replicas):
            yield from _replica(replica, (*here, "replicas", index), env)
            named.append(((*here, "replicas", index, "name"), replica_names(alias, upstream)[index]))
        if upstream.engine is not None:
            yield from engine_problems(upstream.engine, (*here, "engine"))
    yield from _twice(named, "replica name")


def _tokenizer(upstream: Upstream, here: Path) -> Iterator[Problem]:
    given = upstream.tokenizer
    if given is None:
        if upstream.forward_token_ids:
            yield Problem((*here, "forward_token_ids"), "needs tokenizer, the file that makes the ids")
        return
    file = FilePath(given).expanduser()
    if not file.exists():
        yield Problem((*here, "tokenizer"), f"there is no file {given}")
    elif file.is_dir() and not (file / "tokenizer.json").is_file():
        yield Problem((*here, "tokenizer"), f"there is no tokenizer.json in {given}")
    elif find_spec("tokenizers") is None or find_spec("jinja2") is None:
        yield Problem((*here, "tokenizer"), "needs two libraries more: pip install 'tidegate[tokenizers]'")


def _images(settings: Settings, alias: str) -> Iterator[Problem]:
    target, here = settings.upstreams[alias].images_to, ("upstreams", alias, "images_to")
    if target is None:
        return
    if target not in settings.upstreams:
        yield Problem(here, f"there is no upstream {target!r}{suggestion(target, settings.upstreams)}")
    elif target == alias or settings.upstreams[target].images_to is not None:
        yield Problem(here, f"must name an upstream that takes images itself, and {target} sends them on")


def _overlength(settings: Settings, alias: str) -> Iterator[Problem]:
    upstream, here = settings.upstreams[alias], ("upstreams", alias, "long_to")
    target, is_routed = upstream.long_to, upstream.on_overlength is OnOverlength.ROUTE_LONG
    if target is None:
        if is_routed:
            yield Problem(("upstreams", alias, "on_overlength"), "route_long needs long_to, the upstream to send to")
    elif not is_routed:
        yield Problem(here, "has no meaning without on_overlength: route_long")
    elif target not in settings.upstreams:
        yield Problem(here, f"there is no upstream {target!r}{suggestion(target, settings.upstreams)}")
    elif target == alias or settings.upstreams[target].on_overlength is OnOverlength.ROUTE_LONG:
        yield Problem(here, f"must name an upstream that takes long prompts itself, and {target} sends them on")


def _replica(replica: Replica, here: Path, env: Mapping[str, str]) -> Iterator[Problem]:
    yield from _credentials(replica, here, env)
    if replica.url.startswith("http://"):
        for key in ("ca_file", "sni"):
            if getattr(replica, key) is not None:
                yield Problem((*here, key), "has no meaning without TLS; the URL begins with http://")
    elif replica.ca_file is not None and not FilePath(replica.ca_file).is_file():
        yield Problem((*here, "ca_file"), f"there is no file {replica.ca_file}")
    if replica.slot_size_mib is not None and replica.slot_tokens is not None:
        yield Problem((*here, "slot_tokens"), "slot_size_mib is given too; keep one")
    for key in ("slot_size_mib", "kv_pool_bytes"):
        if getattr(replica, key) is not None and replica.bytes_per_token is None:
            yield Problem(
                (*here, key),
                "needs bytes_per_token, to tell how many tokens that is",
                also=((*here, "bytes_per_token"),),
            )
    if replica.kv_tokens is not None and replica.kv_pool_bytes is not None:
        yield Problem((*here, "kv_pool_bytes"), "kv_tokens is given too; keep one")


def _credentials(replica: Replica, here: Path, env: Mapping[str, str]) -> Iterator[Problem]:
    given = [key for key in ("api_key_env", "api_key_file") if getattr(replica, key) is not None]
    if len(given) == 2:
        yield Problem((*here, "api_key_file"), "api_key_env is given too; keep one")
    if given and replica.passthrough:
        yield Problem(
            (*here, "passthrough"),
            f"{given[0]} is given too: send the client's key or our own, not both",
            also=((*here, given[0]),),
        )
    if replica.api_key_env is not None and not env.get(replica.api_key_env):
        yield Problem((*here, "api_key_env"), f"environment variable {replica.api_key_env} is not set")
    if replica.api_key_file is not None and not FilePath(replica.api_key_file).is_file():
        yield Problem((*here, "api_key_file"), f"there is no file {replica.api_key_file}")


def _slots(settings: Settings) -> Iterator[Problem]:
    for plan in slot_plans(settings) if settings.slots.enabled else ():
        if plan.slots == 0:
            yield Problem(
                plan.path, f"its pool of {plan.pool_tokens} tokens is less than one slot ({plan.slot_tokens})"
            )
        elif plan.is_overcommitted and settings.slots.overcommit == "fail":
            yield Problem(
                (*plan.path, "sequences"), f"{plan.overcommit_line()}; slots.overcommit is fail", also=(("slots",),)
            )
