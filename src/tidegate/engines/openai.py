"""Any server that speaks the OpenAI API and tells nothing more."""

from __future__ import annotations

import msgspec

from tidegate.engines.address import Address
from tidegate.errors import TidegateError
from tidegate.policy.reading import Capacity, Reading
from tidegate.wire.fetch import Reply

HEALTH_PATHS = ("/health", "/v1/models")
"""``/health`` is what vLLM, SGLang, llama.cpp and TGI have; ``/v1/models`` is part of the API itself."""
UNKNOWN_PATH = (404, 405, 501)


class Model(msgspec.Struct):
    """One model of /v1/models; ``max_model_len`` is vLLM's."""

    id: str
    max_model_len: int | None = None


class ModelList(msgspec.Struct):
    """The answer of /v1/models."""

    data: list[Model]


class OpenaiServer:
    """Ready or not; how many sequences run there, only our own accounting knows."""

    kind = "openai"
    look_every_s = 5.0
    """It may be a provider that counts requests."""
    confirms_aborts = False
    abort_grace_s = 2.0

    def __init__(self, address: Address) -> None:
        self.address = address
        self._health_path = HEALTH_PATHS[0]

    async def read(self, now: float) -> Reading:
        """Part of ``Engine``."""
        return await self.read_health(now)

    async def capacity(self) -> Capacity:
        """Part of ``Engine``: nothing is known."""
        return Capacity()

    async def models(self) -> tuple[str, ...]:
        """Part of ``Engine``."""
        return tuple(model.id for model in (await self.listed()).data)

    async def listed(self) -> ModelList:
        """What /v1/models says. Raises EngineError or OSError."""
        return await self.address.ask_for(ModelList, "/v1/models")

    async def count_tokens(
        self,
        path: str,  # noqa: ARG002 - the protocol's signature
        body: bytes,  # noqa: ARG002 - the protocol's signature
    ) -> tuple[int, ...] | None:
        """Part of ``Engine``: it does not count."""
        return None

    async def token_ids(self, text: str) -> list[int] | None:  # noqa: ARG002 - the protocol's signature
        """Part of ``Engine``: it does not tell."""
        return None

    async def read_health(self, now: float) -> Reading:
        """Alive or not, without figures. Raises TimeoutError when it is silent."""
        try:
            reply = await self._ask_health()
        except TimeoutError:
            raise
        except (OSError, TidegateError) as error:
            return Reading(at=now, ready=False, error=f"no connection to {self.address.url}: {error}")
        # Pushback is a sign of life: a full server is not a broken one (R4).
        if reply.status < 300 or reply.status == 429:
            return Reading(at=now)
        where = f"{self.address.url}{self._health_path}"
        return Reading(at=now, ready=False, error=f"{where} answered {self.address.describe(reply)}")

    async def _ask_health(self) -> Reply:
        reply = await self.address.ask(self._health_path)
        if reply.status in UNKNOWN_PATH and self._health_path == HEALTH_PATHS[0]:
            self._health_path = HEALTH_PATHS[1]
            reply = await self.address.ask(self._health_path)
        return reply
