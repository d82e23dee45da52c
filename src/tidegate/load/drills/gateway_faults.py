"""What can be done to the own gateway: its data process killed, or all of it."""

from __future__ import annotations

from tidegate.errors import EngineError
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.until import until

DATA_KILLED, GATEWAY_KILLED = "gateway-data-killed", "gateway-killed"
READY_WITHIN_S = 60.0


class DataKilled:
    """SIGKILL to the process that moves the bytes; its parent starts another."""

    name = DATA_KILLED

    def why_not(self) -> str:
        return ""

    async def break_(self, own: OwnDeployment, _replica: str | None) -> None:
        if own.gateway.data_pid() is None:
            raise EngineError("the gateway has no data process")
        own.gateway.kill_data_process()

    async def restore(self, own: OwnDeployment, _replica: str | None) -> None:
        await _until_ready(own)


class GatewayKilled:
    """SIGKILL to the parent, as ``kill -9`` does; what keeps services running starts it again."""

    name = GATEWAY_KILLED

    def why_not(self) -> str:
        return ""

    async def break_(self, own: OwnDeployment, _replica: str | None) -> None:
        own.gateway.kill()

    async def restore(self, own: OwnDeployment, _replica: str | None) -> None:
        await _until_ready(own)


async def _until_ready(own: OwnDeployment) -> None:
    await until(own.gateway.is_ready, READY_WITHIN_S, "the gateway is not ready again")
