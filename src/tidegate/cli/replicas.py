"""The engines behind the service: those that run already are recognised, those of our own are started.

Gives the data process what engines tell (``told``) and the polling whom to ask (``sources``), both
by replica name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from tidegate.cli.embedded_recipe import embedded_recipe
from tidegate.cli.recipe import Recipe
from tidegate.cli.started import OnState, Started
from tidegate.cli.vllm_recipe import vllm_recipe
from tidegate.config import Settings as Config
from tidegate.config.assemble import replica_names, slot_plans
from tidegate.config.slot_plan import SlotPlan, weights_line
from tidegate.config.started_engines import Engine as EngineSection
from tidegate.config.started_engines import Vllm
from tidegate.config.upstreams import Replica
from tidegate.engines.address import Address
from tidegate.engines.engine import Engine
from tidegate.engines.openai import OpenaiServer
from tidegate.engines.recognition import recognise
from tidegate.engines.vllm.readings import VllmServer
from tidegate.errors import EngineError, TidegateError
from tidegate.gateway.composition import Told, endpoint_of
from tidegate.gateway.parent import Say
from tidegate.gateway.settings import Endpoint

ASK_AGAIN_EVERY_S = 2.0


class Given:
    """One engine that runs already. Until it has been recognised it counts as any OpenAI server."""

    def __init__(self, alias: str, endpoint: Endpoint) -> None:
        self.alias = alias
        self.endpoint = endpoint
        self.engine: Engine = OpenaiServer(endpoint.address())
        self.told: Told | None = None
        self.problem = ""

    async def recognise(self) -> None:
        """Find out what it is and what it holds; ``problem`` says why that failed."""
        try:
            self.engine = await recognise(self.engine.address)
            self.told = await told_by(self.engine, self.alias)
            self.problem = ""
        except TimeoutError:
            self.problem = f"{self.engine.address.url} does not answer"
        except (OSError, TidegateError) as error:
            self.problem = str(error)

    def line(self) -> str:
        """For the start log."""
        if self.told is None:
            return f"{self.endpoint.name}: {self.problem}; it gets no requests until it answers"
        model = f", model {self.told.model}" if self.told.model else ""
        return f"{self.endpoint.name}: {self.engine.kind} at {self.engine.address.url}{model}"


class Replicas:
    """``on_change`` is called when an engine tells something after the start."""

    def __init__(self, env: Mapping[str, str], say: Say, on_change: Callable[[], None], on_state: OnState) -> None:
        self._env = env
        self._say = say
        self._on_change = on_change
        self._on_state = on_state
        self._given: dict[str, Given] = {}
        self._started: dict[str, Started] = {}

    @property
    def told(self) -> dict[str, Told]:
        """What each engine has told; those that have not are missing."""
        told = {name: given.told for name, given in self._given.items() if given.told is not None}
        return {**told, **{name: started.told for name, started in self._started.items()}}

    @property
    def sources(self) -> dict[str, Engine]:
        """Whom the polling asks."""
        given: dict[str, Engine] = {name: given.engine for name, given in self._given.items()}
        return {**given, **{name: started.engine for name, started in self._started.items()}}

    @property
    def coming_up(self) -> list[str]:
        """Engines of our own that are known not to serve yet."""
        return [name for name, started in self._started.items() if started.is_slow]

    @property
    def restarts(self) -> dict[str, int]:
        """How often each engine of our own was started again."""
        return {name: started.restarts for name, started in self._started.items()}

    def sleeper(self, replica: str) -> VllmServer | None:
        """The engine of our own under this name, if it can be sent to sleep."""
        started = self._started.get(replica)
        if started is None or not started.can_sleep or not isinstance(started.engine, VllmServer):
            return None
        return started.engine

    async def recognise(self, config: Config) -> None:
        """Take the running engines of ``config``, asking those that are not known yet. Raises ConfigError."""
        wanted = {}
        for alias, upstream in config.upstreams.items():
            for name, replica in zip(replica_names(alias, upstream), upstream.replicas, strict=False):
                wanted[name] = self._given_of(alias, name, replica)
        await self._ask([given for given in wanted.values() if given.told is None])
        self._given = wanted

    def _given_of(self, alias: str, name: str, replica: Replica) -> Given:
        endpoint = endpoint_of(replica, name, self._env)
        known = self._given.get(name)
        same = known is not None and known.endpoint == endpoint and known.alias == alias
        return known if known is not None and same else Given(alias, endpoint)

    async def _ask(self, given: list[Given]) -> None:
        await asyncio.gather(*(each.recognise() for each in given))
        for each in given:
            self._say("info" if each.told is not None else "warning", each.line())

    async def watch(self) -> None:
        """Bring up what takes long, and ask again those that did not answer at first, for ever.

        Raises EngineError when the only replica that there is cannot start.
        """
        await asyncio.gather(self._bring_up(), self._ask_the_silent())

    async def _bring_up(self) -> None:
        """One after the other: vLLM measures the memory of its GPU while it starts."""
        for started in [each for each in self._started.values() if each.is_slow]:
            try:
                await self._up(started)
            except EngineError:
                # Its end has been told already. The others serve on without it.
                if len(self._given) + len(self._started) == 1:
                    raise
            else:
                self._on_change()

    async def _up(self, started: Started) -> None:
        self._say("info", started.loading_line)
        await started.start()
        self._say("info", weights_line(started.resident_bytes))

    async def _ask_the_silent(self) -> None:
        while True:
            await asyncio.sleep(ASK_AGAIN_EVERY_S)
            silent = [given for given in self._given.values() if given.told is None]
            await asyncio.gather(*(each.recognise() for each in silent))
            found = [each for each in silent if each.told is not None]
            for each in found:
                self._say("info", each.line())
            if found:
                self._on_change()

    async def start(self, config: Config) -> None:
        """Prepare the engines of our own, and start those that are ready in a moment. Raises EngineError."""
        for plan in slot_plans(config):
            section = config.upstreams[plan.upstream].engine
            if section is None or plan.path[-1] != "engine":
                continue
            # It may run the engine's interpreter, and must not hold the admin port meanwhile.
            recipe = await asyncio.to_thread(recipe_of, section, plan)
            for line in recipe.warnings:
                self._say("error", line)
            started = self._started[plan.replica] = Started(plan.replica, recipe, self._say, self._on_state)
            if not started.is_slow:
                await self._up(started)

    async def close(self) -> None:
        """Stop the engines of our own."""
        await asyncio.gather(*(started.close() for started in self._started.values()))

    def kill(self) -> None:
        """End them without another word."""
        for started in self._started.values():
            started.kill()


def recipe_of(section: EngineSection, plan: SlotPlan) -> Recipe:
    """Raises EngineError for an engine that could not start."""
    if isinstance(section, Vllm):
        return vllm_recipe(plan.upstream, plan.replica, section, plan)
    return embedded_recipe(plan.upstream, plan.replica, section)


async def told_by(engine: Engine, alias: str) -> Told:
    """Ask ``engine`` for what it holds. Raises EngineError or OSError."""
    models = await engine.models()
    return Told(
        kind=engine.kind,
        capacity=await engine.capacity(),
        confirms_aborts=engine.confirms_aborts,
        abort_grace_s=engine.abort_grace_s,
        model=models[0] if len(models) == 1 and alias not in models else None,
    )


async def model_name(address: Address) -> str:
    """The one model that the engine at ``address`` serves. Raises EngineError when it cannot be told."""
    try:
        engine = await recognise(address)
        models = await engine.models()
    except (OSError, TidegateError) as error:
        said = str(error) or "it does not answer"
        raise EngineError(
            f"cannot ask {address.url} which model it serves: {said}; "
            "start the engine first, or name the model: --upstream NAME=URL"
        ) from None
    if len(models) != 1:
        listed = ", ".join(models[:5]) or "none"
        raise EngineError(f"{address.url} lists {len(models)} models ({listed}); name one: --upstream NAME=URL")
    return models[0]
