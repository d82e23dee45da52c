"""Sections ``tail`` and ``marks``: dynamic timeouts, which replicas are left alone, and keys under suspicion."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.config.section import Ranged, Section
from tidegate.policy.breaker import BreakerConfig
from tidegate.policy.ejections import EjectionsConfig
from tidegate.policy.health_config import HealthConfig
from tidegate.policy.marks import MarksConfig
from tidegate.policy.outliers import OutliersConfig
from tidegate.policy.timeouts import TimeoutsConfig
from tidegate.policy.watchdog import WatchdogConfig

_PHASE = Ranged(
    floor_s=Field(gt=0, description="The learned timeout never falls below it."),
    ceiling_s=Field(gt=0, description="The learned timeout never rises above it."),
    default_s=Field(gt=0, description="Holds until enough samples are there."),
)

Timeouts = Annotated[
    TimeoutsConfig,
    Ranged(
        multiplier=Field(gt=1, description="Timeout = multiplier × P90 of the phase (SPEC S0-40, S0-45)."),
        min_samples=Field(ge=1, description="Samples of a model, class and length before its own P90 counts."),
        freeze_share=Field(gt=0, le=1, description="Share of timed-out samples from which learning stops."),
        first_byte=_PHASE,
        gap=_PHASE,
        total=_PHASE,
    ),
]

Breaker = Annotated[
    BreakerConfig,
    Ranged(
        enabled=Field(description="Off: a failing replica keeps its traffic."),
        window_s=Field(gt=0, description="Results older than it are forgotten."),
        min_calls=Field(ge=1, description="Results in the window before its shares count."),
        failure_share=Field(gt=0, le=1, description="Share of failed attempts that opens it."),
        slow_share=Field(gt=0, le=1, description="Share of slow attempts that opens it."),
        consecutive_failures=Field(ge=1, description="Failures in a row that open it at once."),
        connect_failures=Field(ge=1, description="Connections in a row that nobody took, which open it at once."),
        cooldown_s=Field(gt=0, description="How long it stays open the first time; twice as long each further time."),
        max_cooldown_s=Field(gt=0, description="Bound of the growing time it stays open."),
        probes=Field(ge=1, description="Trial requests, and successes among them, that close it again."),
    ),
]

Ejections = Annotated[
    EjectionsConfig,
    Ranged(base_s=Field(gt=0), max_s=Field(gt=0), max_ejected_share=Field(ge=0, le=1)),
]

Outliers = Annotated[
    OutliersConfig,
    Ranged(
        enabled=Field(description="Off: a replica that is unlike its peers keeps its traffic."),
        window_s=Field(gt=0),
        min_samples=Field(ge=1),
        windows=Field(ge=1),
        slow_factor=Field(gt=1),
        failure_share=Field(gt=0, le=1),
        failure_factor=Field(gt=1),
        min_calls=Field(ge=1),
    ),
]

Watchdog = Annotated[
    WatchdogConfig,
    Ranged(
        enabled=Field(description="Off: a replica that makes no progress keeps its traffic."),
        stall_s=Field(gt=0),
        blind_factor=Field(gt=1),
    ),
]

Health = Annotated[
    HealthConfig,
    Ranged(
        window_s=Field(gt=0),
        p90_s=Field(gt=0),
        error_share=Field(ge=0, le=1),
        shed_share=Field(ge=0, le=1),
    ),
]

Marks = Annotated[
    MarksConfig,
    Ranged(
        enabled=Field(description="Off: nothing is marked by itself; what an operator marks holds."),
        trigger_count=Field(
            ge=1, description="Timeouts of one key within the window that mark it high-risk (SPEC S0-41, S0-47)."
        ),
        window_s=Field(gt=0, description="Window in which they count (SPEC S0-46)."),
        high_risk_s=Field(gt=0),
        over_length=Ranged(
            enabled=Field(description="Off: prompts that can never fit are refused, and nothing more."),
            count=Field(ge=1),
            window_s=Field(gt=0, description="Window in which they count."),
            block_s=Field(gt=0),
        ),
    ),
]


class Tail(Section):
    """Off (also in ``mode: dev``): timeouts stay at their defaults, no breaker opens, no session is marked."""

    enabled: bool = True
    """One switch for timeouts, breaker, outliers, watchdog and marks (SPEC S0-44)."""
    timeouts: Timeouts = TimeoutsConfig()
    breaker: Breaker = BreakerConfig()
    ejections: Ejections = EjectionsConfig()
    outliers: Outliers = OutliersConfig()
    watchdog: Watchdog = WatchdogConfig()
    health: Health = HealthConfig()
