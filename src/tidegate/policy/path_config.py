"""Every policy's parameters, as one value: what a driver makes a ``Path`` from and reloads it with."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.policy.balance.balancer import BalanceConfig
from tidegate.policy.breaker import BreakerConfig
from tidegate.policy.burst import BurstConfig
from tidegate.policy.classes import ClassesConfig
from tidegate.policy.ejections import EjectionsConfig
from tidegate.policy.giants import GiantsConfig
from tidegate.policy.groups import GroupsConfig
from tidegate.policy.health_config import HealthConfig
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.limits.adaptive import LimitConfig
from tidegate.policy.limits.per_model import ModelsConfig
from tidegate.policy.limits.prefill import PrefillConfig
from tidegate.policy.margin import MarginConfig
from tidegate.policy.marks import MarksConfig
from tidegate.policy.outliers import OutliersConfig
from tidegate.policy.pacing import PacingConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.quota import QuotaConfig
from tidegate.policy.reading import ReplicaConfig
from tidegate.policy.retries import RetriesConfig
from tidegate.policy.slots import SlotsConfig
from tidegate.policy.tenants import TenantsConfig
from tidegate.policy.timeouts import TimeoutsConfig
from tidegate.policy.watchdog import WatchdogConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PathConfig:
    replicas: tuple[ReplicaConfig, ...] = ()
    slots: SlotsConfig = field(default=SlotsConfig())
    groups: GroupsConfig = field(default=GroupsConfig())
    classes: ClassesConfig = field(default=ClassesConfig())
    burst: BurstConfig = field(default=BurstConfig())
    pacing: PacingConfig = field(default=PacingConfig())
    queue: QueueConfig = field(default=QueueConfig())
    giants: GiantsConfig = field(default=GiantsConfig())
    margin: MarginConfig = field(default=MarginConfig())
    limit: LimitConfig = field(default=LimitConfig())
    prefill: PrefillConfig = field(default=PrefillConfig())
    timeouts: TimeoutsConfig = field(default=TimeoutsConfig())
    breaker: BreakerConfig = field(default=BreakerConfig())
    ejections: EjectionsConfig = field(default=EjectionsConfig())
    outliers: OutliersConfig = field(default=OutliersConfig())
    watchdog: WatchdogConfig = field(default=WatchdogConfig())
    health: HealthConfig = field(default=HealthConfig())
    balance: BalanceConfig = field(default=BalanceConfig())
    marks: MarksConfig = field(default=MarksConfig())
    ladder: LadderConfig = field(default=LadderConfig())
    retries: RetriesConfig = field(default=RetriesConfig())
    quota: QuotaConfig = field(default=QuotaConfig())
    tenants: TenantsConfig = field(default=TenantsConfig())
    models: ModelsConfig = field(default=ModelsConfig())

    def __post_init__(self) -> None:
        names = [replica.name for replica in self.replicas]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two replicas cannot share a name: {', '.join(twice)}")
        groups = {group.name for pool in self.groups.pools for group in pool.groups}
        for replica in self.replicas:
            if replica.group is not None and (replica.group not in groups or not replica.capacity.bytes_per_token):
                raise ValueError(f"replica {replica.name} needs bytes_per_token and one of the groups {sorted(groups)}")
