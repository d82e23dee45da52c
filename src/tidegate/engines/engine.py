"""What every engine adapter can be asked."""

from __future__ import annotations

from typing import Protocol

from tidegate.engines.address import Address
from tidegate.policy.reading import Capacity, Reading


class Engine(Protocol):
    """One engine server, as the control plane sees it. Nothing here is on the request path."""

    @property
    def kind(self) -> str:
        """``openai``, ``vllm`` or ``llamacpp``."""

    @property
    def address(self) -> Address:
        """Where it is asked."""

    @property
    def look_every_s(self) -> float:
        """Shortest time between two calls of ``read`` that does this engine no harm."""

    @property
    def confirms_aborts(self) -> bool:
        """Its readings tell how many sequences run, so an abort can be confirmed by one."""

    @property
    def abort_grace_s(self) -> float:
        """How long an abort may stay unconfirmed before its slots are given back all the same."""

    async def read(self, now: float) -> Reading:
        """One look. ``now`` becomes ``Reading.at``.

        An engine that refuses or is not ready is a reading with ``ready`` False and words; one that
        is alive and does not tell its figures is ready, with None for them (R6).

        Raises:
            TimeoutError: it is silent, which says nothing yet: it may be busy.
        """

    async def capacity(self) -> Capacity:
        """What it holds, as far as it tells. Raises EngineError or OSError."""

    async def models(self) -> tuple[str, ...]:
        """Names of the models it serves. Raises EngineError or OSError."""

    async def count_tokens(self, path: str, body: bytes) -> tuple[int, ...] | None:
        """Exact prompt tokens, one number for each prompt of the request ``body`` sent to ``path``
        (``/v1/chat/completions`` or ``/v1/completions``). None: this engine does not count.

        Raises EngineError (the engine finds the request wrong) or OSError.
        """

    async def token_ids(self, text: str) -> list[int] | None:
        """Token ids of ``text`` as the prompt of a completion. None: this engine does not tell.

        Raises EngineError or OSError.
        """
