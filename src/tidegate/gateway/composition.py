"""Configuration and what engines told, made into the data process's settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from tidegate.config.assemble import path_config, replica_names, slot_plans
from tidegate.config.settings import Settings as Config
from tidegate.config.slot_plan import SlotPlan, fitted
from tidegate.config.started_engines import Vllm
from tidegate.config.upstreams import Replica, Upstream
from tidegate.errors import ConfigError
from tidegate.gateway.settings import ApiKey, Callbacks, Counting, Endpoint, Limits, Settings, Timers
from tidegate.policy.abnormal import OnOverlength, Overlength
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.reading import Capacity, ReplicaConfig

DEFAULT_PORTS = {"http": 80, "https": 443}

BOUND_AT_START = ("host", "port", "admin_host", "admin_port", "admin_tokens")
"""Keys of ``server`` that a reload leaves as they are (``config.reload.RESTART``)."""


@dataclass(slots=True, kw_only=True)
class Told:
    """What one engine said about itself. None: it did not tell."""

    kind: str = "openai"
    capacity: Capacity = field(default=Capacity())
    confirms_aborts: bool = False
    abort_grace_s: float | None = None
    model: str | None = None
    """The one model that it serves, when it does not serve the alias."""
    endpoint: Endpoint | None = None
    """Where an engine that Tidegate started listens; configured replicas say so themselves."""


def plans_told(config: Config, told: Mapping[str, Told]) -> dict[str, SlotPlan]:
    """The slot arithmetic of every replica, completed by what its engine told."""
    return {plan.replica: _plan_told(plan, config, told.get(plan.replica)) for plan in slot_plans(config)}


def pool_lines(config: Config, told: Mapping[str, Told], overcommit: str) -> list[str]:
    """WARN lines for sequences that a pool does not hold, among them the pools that only the engines told (SPEC C1).

    Raises ConfigError under ``overcommit`` "fail".
    """
    plans = plans_told(config, told).values() if config.slots.enabled else ()
    return [line for plan in plans for line in fitted(plan, overcommit)]


def _plan_told(plan: SlotPlan, config: Config, told: Told | None) -> SlotPlan:
    if told is None:
        return plan
    engine = told.capacity
    known = plan.told(engine.kv_tokens, engine.sequences, engine.context_tokens)
    if told.endpoint is not None and engine.kv_tokens is not None:
        # Of an engine of our own the file can only tell what it was started with.
        known = replace(known, pool_tokens=engine.kv_tokens)
    return known if _is_slot_size_given(plan, config) else replace(known, slot_tokens=engine.slot_tokens)


def _is_slot_size_given(plan: SlotPlan, config: Config) -> bool:
    """The configuration says how large a slot is; otherwise the engine's own unit is the better one."""
    position = plan.path[-1]
    if not isinstance(position, int):
        return True
    replica = config.upstreams[plan.upstream].replicas[position]
    size_mib = replica.slot_size_mib or config.slots.slot_size_mib
    return replica.slot_tokens is not None or bool(size_mib and replica.bytes_per_token)


def compose(config: Config, told: Mapping[str, Told], env: Mapping[str, str]) -> Settings:
    """The settings under which the data process runs.

    A started engine that has not told its endpoint yet gets a closed one; it is not ready until it has.
    Raises ConfigError for a credential that cannot be read.
    """
    server = config.server
    plans = plans_told(config, told)
    path = path_config(config)
    replicas = tuple(_completed(each, plans[each.name], told.get(each.name)) for each in path.replicas)
    return Settings(
        path=replace(path, replicas=replicas),
        endpoints=tuple(endpoints(config, told, env)),
        host=server.host,
        port=server.port,
        limits=Limits(head_bytes=server.max_head_bytes, body_bytes=server.max_body_bytes),
        timers=Timers(
            idle_s=server.keep_alive_s,
            head_s=server.head_s,
            connect_s=server.connect_s,
            reuse_s=server.reuse_s,
            heartbeat_s=server.heartbeat_s,
            drain_s=server.drain_s,
        ),
        counting=Counting(),
        api_keys=tuple(ApiKey(sha256=key.sha256, tenant=key.tenant) for key in server.api_keys),
        trusted_proxies=server.trusted_proxies,
        are_paths_strict=server.strict_paths,
        are_requests_logged=server.log_requests,
        are_rows_sent=config.lens.enabled or server.log_requests,
        images_to=_images_to(config),
        input=config.input,
        overlength=_overlength(config),
        output=config.output,
        outputs=_outputs(config),
        continuation={
            alias: each.continuation for alias, each in config.upstreams.items() if each.continuation != "off"
        },
        idempotency=config.idempotency,
        jobs=config.jobs,
        callbacks=Callbacks(origins=config.callbacks.origins, secret=_secret(config, env)),
        is_cache_enabled=any(each.keeps_answers for each in (path.ladder, *path.models.ladders.values())),
        normalises_answers=path.ladder.answers.normalise,
    )


def _secret(config: Config, env: Mapping[str, str]) -> str | None:
    name = config.callbacks.secret_env
    if name is None:
        return None
    secret = env.get(name)
    if not secret:
        raise ConfigError([f"callbacks.secret_env: the variable {name} is not set, so callbacks could not be signed"])
    return secret


def _overlength(config: Config) -> dict[str, Overlength]:
    return {
        alias: Overlength(action=upstream.on_overlength, long_to=upstream.long_to)
        for alias, upstream in config.upstreams.items()
        if upstream.on_overlength is not OnOverlength.REJECT
    }


def _outputs(config: Config) -> dict[str, OutputConfig]:
    own = {alias: upstream.output.over(config.output) for alias, upstream in config.upstreams.items()}
    return {alias: output for alias, output in own.items() if output != config.output}


def _images_to(config: Config) -> dict[str, str]:
    named = {alias: upstream.images_to for alias, upstream in config.upstreams.items()}
    return {alias: target for alias, target in named.items() if target is not None}


def keep_started(old: Config, new: Config) -> Config:
    """``new``, with the engines and addresses of ``old``: what was started or bound once changes at a restart only."""
    upstreams = {}
    for alias in dict.fromkeys([*new.upstreams, *old.upstreams]):
        engine = old.upstreams[alias].engine if alias in old.upstreams else None
        replicas = new.upstreams[alias].replicas if alias in new.upstreams else ()
        if engine is not None or replicas:
            kept = new.upstreams.get(alias, Upstream())
            upstreams[alias] = kept.model_copy(update={"engine": engine})
    bound = {key: getattr(old.server, key) for key in BOUND_AT_START}
    server = new.server.model_copy(update=bound)
    return new.model_copy(update={"upstreams": upstreams, "server": server, "lens": old.lens})


def _completed(replica: ReplicaConfig, plan: SlotPlan, told: Told | None) -> ReplicaConfig:
    if told is None:
        return replica
    grace_s = plan.abort_grace_s if plan.abort_grace_s is not None else told.abort_grace_s
    return replace(
        replica,
        capacity=plan.capacity(),
        abort_grace_s=replica.abort_grace_s if grace_s is None else grace_s,
        confirms_aborts=told.confirms_aborts,
    )


def endpoints(config: Config, told: Mapping[str, Told], env: Mapping[str, str]) -> list[Endpoint]:
    """Where each replica is reached, configured ones first."""
    found = []
    ranks = class_ranks(config)
    sent_here = {*_images_to(config).values(), *(rule.long_to for rule in _overlength(config).values())}
    for alias, upstream in config.upstreams.items():
        names = replica_names(alias, upstream)
        # What was asked of another upstream names that one's model.
        model = alias if alias in sent_here else None
        for name, replica in zip(names, upstream.replicas, strict=False):
            here, said = endpoint_of(replica, name, env), told.get(name, Told())
            priorities = ranks if replica.priority else ()
            here = _tokenized(here, upstream)
            found.append(replace(here, kind=said.kind, model=here.model or said.model or model, priorities=priorities))
        if upstream.engine is not None:
            started = told.get(names[-1], Told()).endpoint or Endpoint(name=names[-1], host="127.0.0.1", port=0)
            started = replace(_tokenized(started, upstream), model=started.model or model)
            is_ordered = isinstance(upstream.engine, Vllm) and upstream.engine.priority
            found.append(replace(started, priorities=ranks) if is_ordered else started)
    return found


def _tokenized(endpoint: Endpoint, upstream: Upstream) -> Endpoint:
    return replace(endpoint, tokenizer=upstream.tokenizer, takes_token_ids=upstream.forward_token_ids)


def class_ranks(config: Config) -> tuple[tuple[str, int], ...]:
    """vLLM's ``priority`` of each service class: 0 for the heaviest, served first; equal weights stay equal."""
    if not config.shaping.enabled:
        return ()
    weights = sorted({each.weight for each in config.classes.values()}, reverse=True)
    return tuple((name, weights.index(each.weight)) for name, each in config.classes.items())


def endpoint_of(replica: Replica, name: str, env: Mapping[str, str]) -> Endpoint:
    """Where a configured replica is reached, and with which key."""
    parts = urlsplit(replica.url)
    host = parts.hostname or ""
    return Endpoint(
        name=name,
        host=host,
        port=parts.port or DEFAULT_PORTS[parts.scheme],
        base_path=_base_path(parts.path),
        model=replica.model,
        api_key=api_key_of(replica, env),
        is_passthrough=replica.passthrough,
        is_tls=parts.scheme == "https",
        ca_file=replica.ca_file,
        server_name=replica.sni,
        proxy=proxy_of(parts.scheme, host),
    )


def _base_path(path: str) -> str:
    """Clients' paths begin with /v1, and so do many people's base URLs: it is not sent twice."""
    return path.rstrip("/").removesuffix("/v1")


def api_key_of(replica: Replica, env: Mapping[str, str]) -> str | None:
    """The engine's key, from the variable or file that the configuration names."""
    if replica.api_key_env is not None:
        return env.get(replica.api_key_env) or None
    if replica.api_key_file is None:
        return None
    try:
        return FilePath(replica.api_key_file).read_text().strip() or None
    except OSError as error:
        raise ConfigError([f"api_key_file {replica.api_key_file}: cannot be read: {error.strerror}"]) from None


def proxy_of(scheme: str, host: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY ask for; never one between us and this machine."""
    if host == "localhost" or _is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies_environment().get(scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
