"""What clients talk to: engines themselves (``native``) or a gateway before them (``tidegate``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tidegate.simulate.visit import Call, Ending


class Front(Protocol):
    """Answers by calling the ``ClientSide`` methods below, during ``open`` or later."""

    refusals: dict[str, int]
    """Refused calls by reason."""

    def open(self, call: Call) -> None:
        """A client sent a request."""

    def leave(self, call: Call) -> None:
        """The client of an open call has gone; nothing about it is told any more."""


class LedgerFront(Front, Protocol):
    """A front whose ledger a watch looks into."""

    def reserved_tokens(self, replica: str) -> int | None:
        """KV tokens promised to requests on a replica; None: this front keeps no ledger."""

    def groups(self) -> Mapping[str, Mapping[str, Any]]:
        """The state of every slot group, by name; empty without any."""


class WithoutLedger:
    """What a front that promises no memory to anybody tells a watch."""

    def reserved_tokens(self, _replica: str) -> int | None:
        return None

    def groups(self) -> Mapping[str, Mapping[str, Any]]:
        return {}


class ClientSide(Protocol):
    """Where a front delivers. Each call gets at most one ``first_token``, then exactly one ending."""

    def first_token(self, call: Call) -> None: ...

    def answered(self, call: Call, output_tokens: int, degraded: str | None = None) -> None: ...

    def refused(self, call: Call, retry_after_s: float | None) -> None:
        """None: coming back is useless."""

    def failed(self, call: Call, ending: Ending) -> None: ...
