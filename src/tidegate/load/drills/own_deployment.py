"""A service started for drills alone: ``tidegate serve`` before several local engines, all of it killable."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from tidegate.engines.address import Address
from tidegate.engines.llamacpp.model_file import DEMO_ALIAS
from tidegate.errors import EngineError, TidegateError
from tidegate.load.drills.drill_engine import OwnEngine
from tidegate.load.drills.fault_proxy import FaultProxy
from tidegate.load.drills.memory_cap import MemoryCap
from tidegate.load.drills.own_gateway import COMMAND, OwnGateway
from tidegate.load.drills.setup import Between, Engine, Setup
from tidegate.load.drills.steady_load import chat_body
from tidegate.load.drills.until import until
from tidegate.load.target import Target

PHASE = {"floor_s": 3.0, "default_s": 5.0, "ceiling_s": 10.0}
TIMEOUTS = {"first_byte": PHASE, "gap": PHASE, "total": {"floor_s": 10.0, "default_s": 20.0, "ceiling_s": 60.0}}
"""For answers of a few tokens. The defaults are for real models: see docs/configuration.md."""
LONG_PHASE = {"floor_s": 10.0, "default_s": 20.0, "ceiling_s": 30.0}
PATIENT = {
    "first_byte": LONG_PHASE,
    "gap": LONG_PHASE,
    "total": {"floor_s": 30.0, "default_s": 40.0, "ceiling_s": 60.0},
}
"""For drills that overload the machine: what is slow there is no engine that hangs."""
WELL_WITHIN_S = 60.0
WARM_UP = 2
FOLLOW_EVERY_S = 0.02


class OwnFault(Protocol):
    """What the own deployment can be broken by. ``replica`` is None for a fault of the whole service."""

    @property
    def name(self) -> str: ...

    def why_not(self) -> str:
        """Why it can't be made on this machine; "": it can."""

    async def break_(self, own: OwnDeployment, replica: str | None, /) -> None:
        """Raises TidegateError where that fails."""

    async def restore(self, own: OwnDeployment, replica: str | None, /) -> None:
        """Returns when what was broken serves again; harmless where nothing is broken. Raises TidegateError."""


class OwnDeployment:
    """Implements ``deployment.Deployment``. ``faults``: by name, what it can be broken by."""

    name = "own"
    is_own = True
    most_error_share = 1.0

    def __init__(
        self,
        folder: Path,
        replicas: int,
        faults: Mapping[str, OwnFault],
        say: Callable[[str], None],
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        """``command``: the gateway's."""
        self.engines: dict[str, Engine] = {}
        self.between: dict[str, Between] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self.say = say
        self.folder = folder
        self.remarks: list[str] = []
        self.setup: Setup | None = None
        self._count = replicas
        self._command = command
        self._faults = faults
        self._gateway: OwnGateway | None = None

    @property
    def gateway(self) -> OwnGateway:
        if self._gateway is None:
            raise EngineError("the deployment has not been started")
        return self._gateway

    @property
    def target(self) -> Target:
        gateway = self.gateway
        return Target(name=self.name, url=f"{gateway.url}/v1", model=DEMO_ALIAS, admin_url=gateway.admin_url)

    @property
    def replicas(self) -> Sequence[str]:
        return [*self.engines] or [f"replica-{number + 1}" for number in range(self._count)]

    def breakable(self, _fault: str) -> Sequence[str]:
        return self.replicas

    @property
    def most_broken(self) -> int:
        return len(self.replicas)

    def take_remarks(self) -> list[str]:
        taken, self.remarks = self.remarks, []
        return taken

    def duplicated(self) -> int:
        """Request ids for which engines wrote more than one whole answer, as what stands before them saw it."""
        answered: Counter[str] = sum((each.answered for each in self.between.values()), Counter())
        return sum(count > 1 for count in answered.values())

    def why_not(self, fault: str) -> str:
        known = self._faults.get(fault)
        return f"no fault is called {fault!r}" if known is None else known.why_not()

    async def prepare(self, setup: Setup) -> None:
        """What runs well and as ``setup`` wants it is kept. Raises EngineError."""
        if self.setup is None or setup != self.setup:
            await self.close()
            await self._start(setup)
        await until(self._is_well, WELL_WITHIN_S, "the deployment does not come to rest")

    async def break_(self, fault: str, replica: str | None) -> None:
        await self._faults[fault].break_(self, replica)

    async def restore(self, fault: str, replica: str | None) -> None:
        await self._faults[fault].restore(self, replica)

    async def view(self) -> Mapping[str, Any] | None:
        return await self.gateway.view()

    async def rows(self) -> Sequence[Mapping[str, Any]]:
        return await self.gateway.rows()

    def engine(self, replica: str) -> Address | None:
        engine = self.engines[replica]
        return Address(url=engine.url, api_key=engine.api_key, timeout_s=30.0)

    def pid(self, replica: str) -> int | None:
        return self.engines[replica].pid

    def resident_bytes(self, replica: str) -> int | None:
        return self.engines[replica].resident_bytes

    def embedded(self, replica: str | None) -> OwnEngine:
        """Raises EngineError where that replica is another kind of engine."""
        engine = None if replica is None else self.engines[replica]
        if not isinstance(engine, OwnEngine):
            raise EngineError(f"{replica} is no embedded engine")
        return engine

    async def close(self) -> None:
        """Nothing that it started is left."""
        gateway, self._gateway, self.setup = self._gateway, None, None
        if gateway is not None:
            await gateway.close()
        for name in tuple(self.engines):
            await self.remove_engine(name)

    async def _start(self, setup: Setup) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.setup = setup
        names = [f"replica-{number + 1}" for number in range(setup.replicas or self._count)]
        await asyncio.gather(*(self.add_engine(name) for name in names))
        self._gateway = OwnGateway(self.folder, self._config(setup), self._secrets(), setup, self._command)
        await self._gateway.start()
        await asyncio.gather(*(self._warm_up(name) for name in self.engines))

    async def _warm_up(self, name: str) -> None:
        """The first requests of an engine take longer, and are no baseline."""
        address = self.engine(name)
        if address is not None:
            for _ in range(WARM_UP):
                await address.ask("/v1/chat/completions", _short_chat())

    async def add_engine(self, name: str) -> None:
        """One more; the gateway knows it after ``reload``."""
        setup = self.setup or Setup()
        engine = self.engines[name] = self._make(name, setup)
        between: Between = FaultProxy(engine.url) if setup.between is None else setup.between(engine.url)
        self.between[name] = between
        await between.start()
        await engine.start()
        self._following[name] = asyncio.create_task(_follow(engine, between))

    def _make(self, name: str, setup: Setup) -> Engine:
        if setup.engine is not None:
            return setup.engine(name)
        cap = MemoryCap(name) if setup.is_capped and MemoryCap.why_not() == "" else None
        return OwnEngine(name, self.say, cap)

    async def remove_engine(self, name: str) -> None:
        """The gateway forgets it with ``reload``, which comes before."""
        following = self._following.pop(name, None)
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await self.between.pop(name).close()
        await self.engines.pop(name).close()

    async def reload(self, names: Sequence[str] | None = None) -> None:
        """Write the gateway's configuration anew, for these replicas (None: all that there are), and have it read.

        A new engine's key is not in the environment of a gateway that runs: give it one without (``Setup.engine``).
        """
        await self.gateway.reload(self._config(self.setup or Setup(), names))

    def _config(self, setup: Setup, names: Sequence[str] | None = None) -> dict[str, Any]:
        replicas = [
            {
                "name": name,
                "url": self.between[name].url,
                **({"api_key_env": _key_name(name)} if self.engines[name].api_key else {}),
            }
            for name in names or sorted(self.engines)
        ]
        upstreams = {DEMO_ALIAS: {"replicas": replicas, **setup.upstream}, **setup.config.get("upstreams", {})}
        return {"tail": {"timeouts": TIMEOUTS}, **setup.config, "upstreams": upstreams}

    def _secrets(self) -> dict[str, str]:
        return {_key_name(name): engine.api_key for name, engine in self.engines.items() if engine.api_key}

    async def _is_well(self) -> bool:
        view = await self.view()
        if waits_for_requests(view):
            await self._ask_once()
        return is_well(view, len(self.engines))

    async def _ask_once(self) -> None:
        """Whatever comes of it: a breaker closes by requests alone, and between drills no load runs."""
        address = Address(url=self.gateway.url, timeout_s=WELL_WITHIN_S)
        with suppress(OSError, TidegateError):
            await address.ask("/v1/chat/completions", _short_chat())


async def _follow(engine: Engine, between: Between) -> None:
    """A process that is gone refuses connections, and what stands before it must not accept them in its place."""
    port, is_open = urlsplit(between.url).port or 0, True
    while True:
        if engine.is_serving != is_open:
            is_open = not is_open
            await (between.start(port) if is_open else between.close())
        await asyncio.sleep(FOLLOW_EVERY_S)


def _short_chat() -> bytes:
    return b'{"model":' + msgspec.json.encode(DEMO_ALIAS) + chat_body("Say hello.", 2, is_stream=False)


def waits_for_requests(view: Mapping[str, Any] | None) -> bool:
    """Nothing is under way, and a replica that is up is still kept out by its breaker."""
    if view is None or view["open_requests"]:
        return False
    return any(each["ready"] and each["breaker"] != "closed" for each in view["replicas"].values())


def is_well(view: Mapping[str, Any] | None, replicas: int) -> bool:
    """All replicas take requests and nothing is under way."""
    if view is None or view["open_requests"]:
        return False
    up = [each for each in view["replicas"].values() if each["ready"] and each["breaker"] == "closed"]
    return len(up) == replicas


def _key_name(replica: str) -> str:
    return f"KEY_OF_{replica.upper().replace('-', '_')}"
