"""What a drill on the own deployment can do besides playing: orders to the gateway's admin port."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.errors import EngineError
from tidegate.load.drills.own_deployment import OwnDeployment
from tidegate.load.drills.scene import Scene


def own_of(scene: Scene) -> OwnDeployment:
    """Raises EngineError on a deployment that was given."""
    deployment = scene.deployment
    if not isinstance(deployment, OwnDeployment):
        raise EngineError(f"{deployment.name} was not started by the drill")
    return deployment


async def order(own: OwnDeployment, method: str, path: str, body: object = None) -> Any:
    """What the admin port answers. Raises EngineError where it refuses, and what ``fetch`` raises."""
    reply = await own.gateway.admin(path, method, body)
    if reply.status >= 300:
        raise EngineError(f"{method} {path} was answered {reply.status}: {reply.body.decode(errors='replace')}")
    return msgspec.json.decode(reply.body)


async def change(scene: Scene, changes: dict[str, Any]) -> None:
    """Set these configuration keys at run time; they are taken back when the fault is over."""
    own = own_of(scene)
    scene.on_restore(f"configuration: {', '.join(changes)}", lambda: _take_back(own, list(changes)))
    await order(own, "PATCH", "/admin/config", changes)


async def _take_back(own: OwnDeployment, keys: list[str]) -> None:
    await order(own, "PATCH", "/admin/config", dict.fromkeys(keys))
