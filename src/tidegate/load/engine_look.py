"""One look at what a target says of itself: Tidegate on its admin port, vLLM and llama.cpp on their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tidegate.engines.address import Address
from tidegate.engines.engine import Engine
from tidegate.engines.openai import OpenaiServer
from tidegate.engines.recognition import recognise
from tidegate.engines.samples import Samples
from tidegate.errors import EngineError
from tidegate.load.target import Target
from tidegate.wire.tls import Tls

REQUESTS, SLOTS, TOKENS = "requests", "slots", "tokens"

Figures = dict[tuple[str, str], float]
"""By unit and name."""


class Look(Protocol):
    """Something that is read again and again beside a run."""

    @property
    def title(self) -> str:
        """Of what."""

    @property
    def every_s(self) -> float:
        """Shortest time between two looks that does no harm."""

    async def read(self) -> Figures:
        """Raises EngineError, ProtocolError or OSError; EngineError also where it will never tell anything."""


OF_A_GATEWAY = {
    "tidegate_queue_requests": (REQUESTS, "in the gateway's queue"),
    "tidegate_limit_in_flight": (REQUESTS, "at the engines"),
    "tidegate_limit_value": (REQUESTS, "limit"),
    "tidegate_slots_used": (SLOTS, "used"),
    "tidegate_slots_reserved": (SLOTS, "reserved"),
    "tidegate_slots_total": (SLOTS, "total"),
}


@dataclass(slots=True)
class GatewayLook:
    """Sums over all replicas."""

    title: str
    admin: Address
    every_s: float = 1.0

    async def read(self) -> Figures:
        """Part of ``Look``."""
        reply = await self.admin.ask("/metrics")
        if reply.status != 200:
            raise EngineError(f"{self.admin.url}/metrics answered {self.admin.describe(reply)}")
        page = Samples(reply.body, OF_A_GATEWAY)
        return {key: total for name, key in OF_A_GATEWAY.items() if (total := page.total(name)) is not None}


@dataclass(slots=True)
class EngineLook:
    """An engine that is asked directly. What it is, is found out by the first look."""

    title: str
    address: Address
    every_s: float = 1.25
    engine: Engine | None = field(default=None, init=False)

    async def read(self) -> Figures:
        """Part of ``Look``."""
        if self.engine is None:
            found = await recognise(self.address)
            if type(found) is OpenaiServer:
                raise EngineError("its API tells no readings; where it is a Tidegate, give its admin port (--admin)")
            self.engine = found
        reading = await self.engine.read(0.0)
        if not reading.ready:
            raise EngineError(reading.error)
        told = {
            (REQUESTS, "running"): reading.running,
            (REQUESTS, "waiting"): reading.waiting,
            (TOKENS, "of KV in use"): reading.kv_used_tokens,
            ("preemptions since it started", "preemptions"): reading.preemptions,
        }
        return {key: float(value) for key, value in told.items() if value is not None}


def look_of(target: Target) -> Look:
    """Through the admin port where there is one."""
    tls = None if target.ca_file is None else Tls(ca_file=target.ca_file)
    if target.admin_url is not None:
        return GatewayLook(target.name, Address(url=target.admin_url.rstrip("/"), tls=tls))
    keys = [value for name, value in target.headers if name.lower() == "authorization"]
    key = keys[0].partition(" ")[2].strip() if keys else None
    return EngineLook(target.name, Address(url=target.url.removesuffix("/v1"), api_key=key, tls=tls))
