"""What can be done to a local replica: lost with its host, restarted, frozen."""

from __future__ import annotations

import signal

from tidegate.load.drills.own_deployment import OwnDeployment

LOST, RESTART, FREEZE = "node-lost", "restart", "freeze"


class Lost:
    """Killed, the port closed, and nobody starts it again until it is restored."""

    name = LOST

    def why_not(self) -> str:
        return ""

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        await own.embedded(replica).lose()

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        await own.embedded(replica).start()


class Restart:
    """Killed; its supervisor starts it again."""

    name = RESTART

    def why_not(self) -> str:
        return ""

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        own.embedded(replica).kill()

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        await own.embedded(replica).start()


class Freeze:
    """SIGSTOP: connections stay open, new ones are even accepted by the kernel, and nothing answers."""

    name = FREEZE

    def why_not(self) -> str:
        return ""

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        own.embedded(replica).signal(signal.SIGSTOP)

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        engine = own.embedded(replica)
        engine.signal(signal.SIGCONT)
        await engine.start()
