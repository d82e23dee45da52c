"""How many jobs there may be, and how much memory they may hold: requests whose clients do not wait for the answer.

    a job is taken   if   jobs < most  and  bytes + body + max_result_bytes <= max_bytes,
                          for all tenants together and for its own

A job reserves the longest result there may be, and gives back what its result leaves over. So no result
is ever dropped for want of room: when there is none, the job is refused when it is asked for, and its
client knows (SPEC S0-39: what a long queue cannot take is parked or refused, never lost).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsConfig:
    """A client that prefers to (``Prefer: respond-async``) gets a job to ask for, instead of waiting for its answer."""

    enabled: bool = True
    max_wait_s: float = 900.0
    """From acceptance to a place on a replica, in place of its class's wait; then the job has failed."""
    max_age_s: float = 3600.0
    """How long after its end a job, with its result, can be asked for."""
    max_offered: int = 64
    """Jobs that stand in the queues or run; the others are parked, and take no room in a queue."""
    max_jobs: int = 10_000
    max_tenant_jobs: int = 1_000
    """Of one tenant, running, parked and ended together. A client that deletes a job makes room."""
    max_bytes: int = 256 * 1024 * 1024
    max_tenant_bytes: int = 64 * 1024 * 1024
    """Of one tenant."""
    max_result_bytes: int = 1024 * 1024
    """Reserved for each job until it ends; a longer result is a failure."""

    def __post_init__(self) -> None:
        if self.max_wait_s <= 0 or self.max_age_s <= 0 or self.max_offered < 1:
            raise ValueError(f"jobs need max_wait_s > 0, max_age_s > 0 and max_offered >= 1: {self}")
        if not 0 < self.max_tenant_jobs <= self.max_jobs:
            raise ValueError(f"jobs need 0 < max_tenant_jobs <= max_jobs: {self}")
        if not 0 < self.max_result_bytes <= self.max_tenant_bytes <= self.max_bytes:
            raise ValueError(f"jobs need 0 < max_result_bytes <= max_tenant_bytes <= max_bytes: {self}")


class JobAccounts:
    """What is held by jobs, of each tenant and of all. Every ``take`` is followed by one ``leave``."""

    __slots__ = ("_of_tenant", "config", "held_bytes", "jobs")

    def __init__(self, config: JobsConfig) -> None:
        self.config = config
        self.jobs = 0
        self.held_bytes = 0
        self._of_tenant: dict[str, tuple[int, int]] = {}
        """Jobs and bytes; no tenant without a job."""

    def shortage(self, tenant: str, wanted_bytes: int) -> str:
        """The bound that one more job of ``wanted_bytes`` would pass; "" when there is room."""
        config, (jobs, held_bytes) = self.config, self.of_tenant(tenant)
        if jobs >= config.max_tenant_jobs:
            return "jobs.max_tenant_jobs"
        if held_bytes + wanted_bytes > config.max_tenant_bytes:
            return "jobs.max_tenant_bytes"
        if self.jobs >= config.max_jobs:
            return "jobs.max_jobs"
        return "jobs.max_bytes" if self.held_bytes + wanted_bytes > config.max_bytes else ""

    def of_tenant(self, tenant: str) -> tuple[int, int]:
        """Its jobs, and the bytes that they hold."""
        return self._of_tenant.get(tenant, (0, 0))

    def take(self, tenant: str, size_bytes: int) -> None:
        """A job is accepted."""
        self._move(tenant, 1, size_bytes)

    def resize(self, tenant: str, more_bytes: int) -> None:
        """A job holds ``more_bytes`` than before, or fewer."""
        self._move(tenant, 0, more_bytes)

    def leave(self, tenant: str, size_bytes: int) -> None:
        """A job that holds so much is gone."""
        self._move(tenant, -1, -size_bytes)

    def _move(self, tenant: str, jobs: int, size_bytes: int) -> None:
        known_jobs, known_bytes = self.of_tenant(tenant)
        self.jobs += jobs
        self.held_bytes += size_bytes
        if known_jobs + jobs:
            self._of_tenant[tenant] = (known_jobs + jobs, known_bytes + size_bytes)
        else:
            del self._of_tenant[tenant]
