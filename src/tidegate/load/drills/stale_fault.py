"""An engine whose own figures are old, missing or late, while it serves as before."""

from __future__ import annotations

from tidegate.errors import EngineError
from tidegate.load.drills.fault_proxy import FaultProxy
from tidegate.load.drills.impairment import Impairment, Pages
from tidegate.load.drills.own_deployment import OwnDeployment


class StalePages:
    """``name`` tells in which way."""

    def __init__(self, pages: Pages) -> None:
        self.name = f"metrics-{pages.value}"
        self._impairment = Impairment(pages=pages)

    def why_not(self) -> str:
        """Part of ``OwnFault``."""
        return ""

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        """Part of ``OwnFault``."""
        self._proxy(own, replica).impair(self._impairment)

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        """Part of ``OwnFault``."""
        self._proxy(own, replica).heal()

    def _proxy(self, own: OwnDeployment, replica: str | None) -> FaultProxy:
        proxy = None if replica is None else own.between.get(replica)
        if not isinstance(proxy, FaultProxy):
            raise EngineError(f"nothing stands between the gateway and {replica}")
        return proxy


STALE = tuple(StalePages(way) for way in (Pages.FROZEN, Pages.FAILING, Pages.SILENT))
