"""The whole configuration, validated: one attribute per section of the YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from tidegate.config.balance import Balance
from tidegate.config.idempotency import Idempotency
from tidegate.config.jobs import Callbacks, Jobs
from tidegate.config.ladder import Ladder, Retries
from tidegate.config.lens import Lens
from tidegate.config.limits import Limits
from tidegate.config.origin import DEFAULT, Origin, Path
from tidegate.config.output import Input, Output
from tidegate.config.pools import Pools
from tidegate.config.quotas import Quota, Tenants
from tidegate.config.section import Section
from tidegate.config.server import Server
from tidegate.config.shaping import DEFAULT_CLASSES, Classes, Shaping
from tidegate.config.slots import Slots
from tidegate.config.tail import Marks, Tail
from tidegate.config.upstreams import Upstream
from tidegate.policy.abnormal import InputConfig
from tidegate.policy.balance.balancer import BalanceConfig
from tidegate.policy.idempotency import IdempotencyConfig
from tidegate.policy.job_accounts import JobsConfig
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.marks import MarksConfig
from tidegate.policy.output.output_config import OutputConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.retries import RetriesConfig

Alias = Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where settings came from."""

    origins: Mapping[Path, Origin] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    file: FilePath | None = None


class Settings(Section):
    """``tidegate.yaml``."""

    mode: Literal["production", "dev"] = "production"
    """``dev``: slots only; shaping, tail and ladder off (alias: VOLC_STABILITY_MODE, SPEC S0-13)."""
    preset: Literal["customer-service", "low-latency-batch", "interactive", "offline"] | None = None
    """A set of defaults for one kind of traffic; whatever is written beside it wins (SPEC S0-34, S1-45, S2-05)."""
    server: Server = Server()
    upstreams: dict[Alias, Upstream] = Field(default_factory=dict)
    """Public model names, each with the engines behind it."""
    slots: Slots = Slots()
    pools: Pools = Field(default_factory=dict)
    """Budgets of KV memory that several models share, each with its groups."""
    shaping: Shaping = Shaping()
    classes: Classes = DEFAULT_CLASSES
    """Service classes; more can be added, for clients that name one in ``x-tidegate-class``."""
    limits: Limits = Limits()
    tail: Tail = Tail()
    marks: Marks = MarksConfig()
    balance: Balance = BalanceConfig()
    ladder: Ladder = LadderConfig()
    retries: Retries = RetriesConfig()
    idempotency: Idempotency = IdempotencyConfig()
    jobs: Jobs = JobsConfig()
    callbacks: Callbacks = Callbacks()
    input: Input = InputConfig()
    """What no engine should be given."""
    output: Output = OutputConfig()
    """Whether answers are fit to be used."""
    quota: Quota = QuotaConfig()
    tenants: Tenants = Field(default_factory=dict)
    """Tenants that differ from the others, by the name that their API keys give."""
    lens: Lens = Lens()

    _provenance: Provenance = PrivateAttr(default_factory=Provenance)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines for the start log at WARN: what was lowered, ignored or has no effect."""
        return self._provenance.warnings

    @property
    def file(self) -> FilePath | None:
        """The YAML that was read; None when there was none."""
        return self._provenance.file

    def origin(self, path: Path) -> Origin:
        """Where the value at ``path`` came from; the default when nobody set it."""
        return self._provenance.origins.get(path, DEFAULT)

    def also_warns(self, lines: Iterable[str]) -> Settings:
        """These settings, with further lines at WARN; none of them twice."""
        known = self._provenance
        self._provenance = replace(known, warnings=tuple(dict.fromkeys((*known.warnings, *lines))))
        return self

    def knows(self, provenance: Provenance) -> Settings:
        """These settings, told where they came from."""
        self._provenance = provenance
        return self
