"""What each tenant has been charged: reserved at arrival, settled or refunded at the end, once.

charged = settled + refunded + still open, at every moment. The only bound is on requests in flight;
rates are a matter of the shaping policies.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig:
    max_in_flight: int | None = None
    """Open requests a tenant may have, waiting ones included; None: no bound."""

    def __post_init__(self) -> None:
        if self.max_in_flight is not None and self.max_in_flight < 1:
            raise ValueError(f"quota.max_in_flight must be at least 1, not {self.max_in_flight}")


class Account:
    """One tenant's sums, in tokens."""

    __slots__ = ("charged", "in_flight", "open", "refunded", "settled")

    def __init__(self) -> None:
        self.in_flight = 0
        self.charged = 0
        self.open = 0
        self.settled = 0
        self.refunded = 0


class Quota:
    __slots__ = ("accounts", "config")

    def __init__(self, config: QuotaConfig) -> None:
        self.config = config
        self.accounts: dict[str, Account] = {}

    def has_room(self, tenant: str) -> bool:
        account = self.accounts.get(tenant)
        return account is None or self.config.max_in_flight is None or account.in_flight < self.config.max_in_flight

    def charge(self, tenant: str, tokens: int) -> None:
        account = self.accounts.get(tenant)
        if account is None:
            account = self.accounts[tenant] = Account()
        account.in_flight += 1
        account.charged += tokens
        account.open += tokens

    def close(self, tenant: str, charged_tokens: int, used_tokens: int) -> None:
        """End a request: what it used is settled, the rest of the charge goes back. Use beyond the
        charge is charged and settled at once."""
        account = self.accounts[tenant]
        account.in_flight -= 1
        account.open -= charged_tokens
        account.settled += used_tokens
        beyond = used_tokens - charged_tokens
        if beyond > 0:
            account.charged += beyond
        else:
            account.refunded -= beyond
