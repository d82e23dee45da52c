"""What may stand in a drill file: a deployment that runs, and how each of its replicas is broken and put back."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Section

Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
PerSecond = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]


class CommandsSection(Section):
    """Commands of yours, run by /bin/sh on the machine that runs the drill. Exit status 0 means done."""

    break_it: Text = Field(alias="break")
    """Breaks it."""
    restore: Text
    """Puts it back; harmless where nothing is broken, since it may be run twice."""
    status: Text
    """Exit status 0 while the replica serves, another while it does not: asked before a drill, and after restore."""


class ReplicaSection(Section):
    name: Text
    """As Tidegate calls it, where the service is one: answers are told apart by it."""
    url: Text | None = None
    """Its engine's own, without /v1: only with it can model, caches and first request be checked after a restart."""
    api_key_env: Text | None = None
    """Variable with the engine's key."""
    faults: dict[Text, CommandsSection] = Field(default_factory=dict)
    """By the fault's name: node-lost, restart, freeze, memory-cap …; tidegate drill list shows which a drill needs."""


class BlastRadiusSection(Section):
    most_replicas: Annotated[int, Field(ge=0)] = 1
    """So many may be broken at the same time."""
    most_error_share: Share = 0.2
    """Of requests that end within a few seconds: beyond it a drill is ended and everything is put back."""


class DeploymentSection(Section):
    name: Text = "given"
    url: Text
    """Of the service, up to and with /v1."""
    model: Text
    api_key_env: Text | None = None
    """Variable with a key of the service."""
    admin_url: Text | None = None
    """Tidegate's admin API."""
    admin_token_env: Text | None = None
    """Variable with its token."""
    allow: Annotated[list[Text], Field(min_length=1)]
    """Hosts that may be broken or loaded. A URL in this file whose host is not among them is refused, always."""
    rate_per_s: PerSecond = 1.0
    """Of the steady load: beside real traffic a small one is enough."""
    peak_per_s: PerSecond | None = None
    """What the service can do; without it no drill sends spikes."""
    blast_radius: BlastRadiusSection = BlastRadiusSection()
    command_within_s: Seconds = 300.0
    """A command that takes longer is ended, and counts as failed."""
    replicas: Annotated[list[ReplicaSection], Field(min_length=1)]
    faults: dict[Text, CommandsSection] = Field(default_factory=dict)
    """Of the whole service."""
