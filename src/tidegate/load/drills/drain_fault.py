"""A replica that gets no new requests: told to the gateway, not done to the engine."""

from __future__ import annotations

from tidegate.errors import EngineError
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.own_scene import order

DRAIN = "drain"


class Drain:
    name = DRAIN

    def why_not(self) -> str:
        """Part of ``OwnFault``."""
        return ""

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        """Part of ``OwnFault``."""
        await self._turn(own, replica, on=True)

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        """Part of ``OwnFault``."""
        await self._turn(own, replica, on=False)

    async def _turn(self, own: OwnDeployment, replica: str | None, *, on: bool) -> None:
        if replica is None:
            raise EngineError("a drain names its replica")
        await order(own, "POST", f"/admin/drain?replica={replica}&on={'true' if on else 'false'}")
