"""Every timeout of the service in one tree, so that nobody waits behind a limit they did not know (R9).

A child cannot outlast its parent: whichever ends first ends the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.config.settings import Settings
from tidegate.policy.classes import ClassConfig
from tidegate.policy.timeouts import PhaseConfig


@dataclass(frozen=True, slots=True)
class Timeout:
    """One limit in time. ``longest_s`` is the most it can be; None: no limit of its own."""

    name: str
    longest_s: float | None
    rule: str
    """How long it is, in words."""
    key: str = ""
    """Where it is set."""
    children: tuple[Timeout, ...] = ()

    def lines(self, lead: str = "", tail: str = "") -> Iterator[str]:
        """The tree as text, a line each."""
        set_by = f"  [{self.key}]" if self.key else ""
        yield f"{lead}{self.name}: {self.rule}{set_by}"
        for child in self.children:
            last = child is self.children[-1]
            yield from child.lines(tail + ("└─ " if last else "├─ "), tail + ("   " if last else "│  "))

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "longest_s": self.longest_s,
            "rule": self.rule,
            "key": self.key,
            "children": [child.plain() for child in self.children],
        }


def timeout_tree(settings: Settings) -> Timeout:
    """The tree of these settings."""
    server = settings.server
    arrival = Timeout("receive", None, f"{server.head_s:g} s without a byte of the request", "server.head_s")
    return Timeout(
        "client deadline",
        None,
        "what the client says (x-tidegate-deadline-ms, x-stainless-read-timeout); without it none",
        children=(arrival, _queue(settings), _attempt(settings), _connection(settings)),
    )


def _queue(settings: Settings) -> Timeout:
    every = {"interactive": settings.classes["interactive"]}
    margin, is_shaped = settings.shaping.margin, settings.shaping.enabled
    shown = settings.classes if is_shaped else every
    early = (
        f"refused at once where the predicted wait passes {margin.least:g}–{margin.most:g} of the deadline"
        if is_shaped
        else "first come, first served"
    )
    waits = [*_class_waits(shown, is_shaped=is_shaped), *_model_waits(settings, shown)]
    return Timeout("queue", max(each.longest_s or 0.0 for each in waits), early, children=tuple(waits))


def _class_waits(shown: Mapping[str, ClassConfig], *, is_shaped: bool) -> Iterator[Timeout]:
    for name, each in shown.items():
        yield Timeout(name, each.max_wait_s, _wait_of(each, is_shaped=is_shaped), f"classes.{name}.max_wait_s")


def _model_waits(settings: Settings, shown: Mapping[str, ClassConfig]) -> Iterator[Timeout]:
    for alias, upstream in settings.upstreams.items():
        for name, wait_s in upstream.limits.max_wait_s.items():
            if name in shown:
                key = f"upstreams.{alias}.limits.max_wait_s.{name}"
                yield Timeout(f"{name}, of model {alias}", wait_s, f"{wait_s:g} s", key)


def _wait_of(each: ClassConfig, *, is_shaped: bool) -> str:
    objective_s = each.ttft_slo_s if is_shaped else None
    told = "" if objective_s is None else f"; a stream only while its first byte can come within {objective_s:g} s"
    return f"{each.max_wait_s:g} s{told}"


def _attempt(settings: Settings) -> Timeout:
    timeouts = settings.tail.timeouts
    learns = settings.tail.enabled and timeouts.enabled
    connect = Timeout("connect", settings.server.connect_s, f"{settings.server.connect_s:g} s", "server.connect_s")
    first_byte = _phase("first byte", timeouts.first_byte, timeouts.multiplier, learns, "first_byte")
    gap = _phase("gap between two reads", timeouts.gap, timeouts.multiplier, learns, "gap")
    total = _phase("attempt", timeouts.total, timeouts.multiplier, learns, "total")
    grace = Timeout(
        "abort",
        None,
        "slots stay held until the engine confirms, or for abort_grace_s",
        "upstreams.<name>.replicas[]",
    )
    return Timeout(total.name, total.longest_s, total.rule, total.key, (connect, first_byte, gap, grace))


def _phase(name: str, phase: PhaseConfig, multiplier: float, learns: bool, key: str) -> Timeout:
    rule = f"{phase.default_s:g} s"
    if learns:
        rule = f"{multiplier:g} × P90, from {phase.floor_s:g} to {phase.ceiling_s:g} s; {rule} until that is known"
    return Timeout(name, phase.ceiling_s if learns else phase.default_s, rule, f"tail.timeouts.{key}")


def _connection(settings: Settings) -> Timeout:
    server = settings.server
    beat = f"every {server.heartbeat_s:g} s until the first token" if server.heartbeat_s else "off"
    return Timeout(
        "connection",
        None,
        "outlives its requests",
        children=(
            Timeout("heartbeat", server.heartbeat_s or None, beat, "server.heartbeat_s"),
            Timeout("keep-alive", server.keep_alive_s, f"{server.keep_alive_s:g} s idle", "server.keep_alive_s"),
            Timeout(
                "drain", server.drain_s, f"{server.drain_s:g} s for running requests after SIGTERM", "server.drain_s"
            ),
        ),
    )


def contradictions(settings: Settings) -> Iterator[str]:
    """Warnings where a child could outlast its parent: it is then the parent that ends it."""
    attempt = _attempt(settings)
    for child in attempt.children:
        if child.longest_s is not None and attempt.longest_s is not None and child.longest_s > attempt.longest_s:
            yield (
                f"{child.key}: up to {child.longest_s:g} s, but {attempt.key} ends an attempt after at most "
                f"{attempt.longest_s:g} s"
            )
    if 0 < settings.server.keep_alive_s <= settings.server.heartbeat_s:
        yield "server.heartbeat_s is not below server.keep_alive_s: proxies in between may cut a waiting stream"
