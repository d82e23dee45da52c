"""A shaky network between the gateway and its engines."""

from __future__ import annotations

from tidegate.load.drills.fault_proxy import FaultProxy
from tidegate.load.drills.impairment import Impairment
from tidegate.load.drills.own_deployment import OwnDeployment

JITTER = "network-jitter"
TO_ENGINES = Impairment(delay_s=0.02, jitter_s=0.015, loss_share=0.02, reset_share=0.003)
"""Each way. Resets are rare: what is reset in the middle of an answer cannot be mended for a client that does not try
again."""


class Jitter:
    name = JITTER

    def why_not(self) -> str:
        """Part of ``OwnFault``."""
        return ""

    async def break_(self, own: OwnDeployment, replica: str | None) -> None:
        """Part of ``OwnFault``; None: the lines to all of them."""
        for proxy in proxies(own, replica):
            proxy.impair(TO_ENGINES)

    async def restore(self, own: OwnDeployment, replica: str | None) -> None:
        """Part of ``OwnFault``."""
        for proxy in proxies(own, replica):
            proxy.heal()


def proxies(own: OwnDeployment, replica: str | None = None) -> list[FaultProxy]:
    """What stands before the engines, or before one of them."""
    standing = own.between.values() if replica is None else [own.between[replica]]
    return [each for each in standing if isinstance(each, FaultProxy)]
