"""Where one engine is asked by the control plane, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tidegate.errors import EngineError
from tidegate.wire.fetch import Reply, fetch
from tidegate.wire.tls import Tls

ASK_WITHIN_S = 1.5
"""A healthy engine answers in milliseconds; a machine whose cores are all taken needs longer."""
QUOTED_CHARACTERS = 200

Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """``url`` is scheme, host, port and base path, without ``/v1`` and without a slash at its end."""

    url: str
    api_key: str | None = None
    tls: Tls | None = None
    proxy: str | None = None
    """``http://host:port`` of a forward proxy; None: a direct connection."""
    timeout_s: float = ASK_WITHIN_S
    """For an answer, where the question does not say otherwise."""

    async def ask(self, path: str, body: bytes | None = None, timeout_s: float | None = None) -> Reply:
        """GET ``path``, or POST ``body`` to it. Raises OSError (TimeoutError too) or ProtocolError."""
        headers = {} if self.api_key is None else {"authorization": f"Bearer {self.api_key}"}
        if body is not None:
            headers["content-type"] = "application/json"
        return await fetch(
            f"{self.url}{path}",
            method="GET" if body is None else "POST",
            headers=headers,
            body=body or b"",
            timeout_s=self.timeout_s if timeout_s is None else timeout_s,
            tls=self.tls,
            proxy=self.proxy,
        )

    async def ask_for(
        self, shape: type[Shape], path: str, body: bytes | None = None, timeout_s: float | None = None
    ) -> Shape:
        """As ``ask``; the JSON of a 200, which must have ``shape``. Raises EngineError for any other answer."""
        reply = await self.ask(path, body, timeout_s)
        if reply.status != 200:
            raise EngineError(f"{self.url}{path} answered {self.describe(reply)}")
        return self.decode(shape, path, reply)

    def decode(self, shape: type[Shape], path: str, reply: Reply) -> Shape:
        """The JSON of an answer to ``path``. Raises EngineError when it does not have ``shape``."""
        try:
            return msgspec.json.decode(reply.body, type=shape)
        except msgspec.DecodeError as error:
            raise EngineError(f"{self.url}{path} answered something unexpected: {error}") from error

    def describe(self, reply: Reply) -> str:
        """Status and beginning of an answer, and what to do about it where that is known."""
        text = reply.body[:QUOTED_CHARACTERS].decode("utf-8", "replace").strip()
        if reply.status in (401, 403):
            used = "without an API key" if self.api_key is None else "with the API key we have"
            return f"{reply.status} {used}; give the engine's key with api_key_env or api_key_file"
        return f"{reply.status} {text}".strip()
