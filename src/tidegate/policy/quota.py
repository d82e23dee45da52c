"""What each tenant may use, and what it has been charged: reserved at arrival, settled or refunded at the end, once.

charged = settled + refunded + still open, at every moment. A tenant has up to three limits: requests in
flight, requests a minute, tokens a minute. A model may have the last two, for all tenants together. All
are looked at before any is charged, so that a refusal by one has taken nothing from another. The
reservation, prompt + reserved output, is taken from the minute's tokens at arrival, so that many requests
at once cannot pass on what each may turn out to use; at the end the bucket gets back what was not used,
or owes what was used beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from tidegate.policy.bucket import Bucket
from tidegate.policy.limits.per_model import ModelsConfig
from tidegate.policy.tenants import TenantConfig, TenantsConfig

IN_FLIGHT = "max_in_flight"
"""The limit that only ends of requests loosen."""
MOST_ACCOUNTS = 4096
"""Beyond it, tenants that hold and owe nothing are forgotten, the oldest first."""
LOOKS = 4
"""Old accounts that are looked at for each new one: enough to keep pace, and a bound on what one costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig:
    """What every tenant may use that has nothing of its own. None: no bound."""

    max_in_flight: int | None = None
    """Open requests a tenant may have, waiting ones included; None: no bound."""
    requests_per_minute: int | None = None
    """Requests a tenant may begin, out of a bucket that holds a minute's worth and fills steadily; None: no bound."""
    tokens_per_minute: int | None = None
    """Tokens a tenant may use, prompts and answers, out of such a bucket; None: no bound. A request takes prompt +
    reserved output at arrival, and gives back at its end what it did not use."""

    def __post_init__(self) -> None:
        for name in ("max_in_flight", "requests_per_minute", "tokens_per_minute"):
            bound = getattr(self, name)
            if bound is not None and bound < 1:
                raise ValueError(f"quota.{name} must be at least 1, not {bound}")


@dataclass(slots=True)
class Shortage:
    """The limit that bars a request for longest."""

    limit: str
    """As the configuration calls it."""
    is_models: bool
    """The model's limit, which all tenants share; else the tenant's own."""
    most: int
    wanted: int
    wait_s: float
    """Until all limits would let it pass: infinite when its own size is above one; 0.0 when only an end of
    another request can tell."""


@dataclass(slots=True)
class RateLimits:
    """What a tenant has left, for the headers of its answers. A limit of 0: there is none."""

    requests_limit: int
    requests_left: int
    requests_full_s: float
    """Until the bucket is full again."""
    tokens_limit: int
    tokens_left: int
    tokens_full_s: float


class Account:
    """One tenant's limits, and its sums in tokens."""

    __slots__ = (
        "charged",
        "in_flight",
        "is_bounded",
        "max_in_flight",
        "open",
        "refunded",
        "requests",
        "requests_per_minute",
        "settled",
        "tokens",
        "tokens_per_minute",
    )

    def __init__(self) -> None:
        self.in_flight = 0
        self.charged = 0
        self.open = 0
        self.settled = 0
        self.refunded = 0
        self.requests = Bucket()
        self.tokens = Bucket()
        self.bound(None, None, None)

    def bound(self, max_in_flight: int | None, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        """Take limits, be it in the middle of everything: what was spent stays spent."""
        self.max_in_flight = max_in_flight
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self.is_bounded = max_in_flight is not None or requests_per_minute is not None or tokens_per_minute is not None

    def shortage(self, tokens: int, is_models: bool, now: float) -> Shortage | None:
        """Look at every limit; takes nothing."""
        worst: Shortage | None = None
        most = self.max_in_flight
        if most is not None and self.in_flight >= most:
            worst = Shortage(IN_FLIGHT, is_models, most, self.in_flight + 1, 0.0)
        most = self.requests_per_minute
        if most is not None:
            wait_s = self.requests.wait_s(1, most, now)
            if wait_s > 0.0:
                worst = Shortage("requests_per_minute", is_models, most, 1, wait_s)
        most = self.tokens_per_minute
        if most is not None:
            wait_s = self.tokens.wait_s(tokens, most, now)
            if wait_s > (0.0 if worst is None else worst.wait_s):
                worst = Shortage("tokens_per_minute", is_models, most, tokens, wait_s)
        return worst

    def charge(self, tokens: int, now: float) -> None:
        self.in_flight += 1
        self.charged += tokens
        self.open += tokens
        if self.requests_per_minute is not None:
            self.requests.take(1, self.requests_per_minute, now)
        if self.tokens_per_minute is not None:
            self.tokens.take(tokens, self.tokens_per_minute, now)

    def close(self, charged_tokens: int, used_tokens: int, now: float) -> None:
        self.in_flight -= 1
        self.open -= charged_tokens
        self.settled += used_tokens
        beyond = used_tokens - charged_tokens
        if beyond > 0:
            self.charged += beyond
        else:
            self.refunded -= beyond
        if self.requests_per_minute is not None and used_tokens == 0:
            self.requests.give_back(1, self.requests_per_minute, now)
        if self.tokens_per_minute is not None:
            self.tokens.give_back(-beyond, self.tokens_per_minute, now)

    def is_idle(self, now: float) -> bool:
        """It holds and owes nothing: a new account would be the same."""
        return (
            self.in_flight == 0
            and (self.requests_per_minute is None or self.requests.settle_to(self.requests_per_minute, now) == 0.0)
            and (self.tokens_per_minute is None or self.tokens.settle_to(self.tokens_per_minute, now) == 0.0)
        )


class Quota:
    """Every tenant's account, and every model's. ``shortage`` and then ``charge``, with nothing in between, is what
    makes a check of several limits atomic."""

    __slots__ = ("_models", "_tenants", "accounts", "config", "models")

    def __init__(self, config: QuotaConfig, tenants: TenantsConfig, models: ModelsConfig) -> None:
        self.config = config
        self._tenants = tenants
        self._models = models
        self.accounts: dict[str, Account] = {}
        self.models: dict[str, Account] = {}

    def reconfigure(self, config: QuotaConfig, tenants: TenantsConfig, models: ModelsConfig) -> None:
        """Take other limits; nobody's sums change, and what was spent stays spent."""
        self.config, self._tenants = config, tenants
        for name, account in self.accounts.items():
            self._bound(account, name)
        self._models = models
        for name, of_model in self.models.items():
            self._bound_model(of_model, name)

    def shortage(self, tenant: str, model: str, tokens: int, now: float) -> Shortage | None:
        """The limit that bars a request of so many tokens for longest, or None. Takes nothing."""
        account, of_model = self._look(tenant), self.models.get(model)
        own = account.shortage(tokens, False, now) if account.is_bounded else None
        if of_model is None:
            of_model = self._new_model(model)
        if not of_model.is_bounded:
            return own
        shared = of_model.shortage(tokens, True, now)
        return shared if own is None or (shared is not None and shared.wait_s > own.wait_s) else own

    def charge(self, tenant: str, model: str, tokens: int, now: float) -> None:
        """Take what a request reserves, after ``shortage`` had nothing against it."""
        account = self.accounts.get(tenant)
        if account is None:
            account = self._open(tenant, now)
        account.charge(tokens, now)
        of_model = self.models.get(model)
        if of_model is None:
            of_model = self.models[model] = self._new_model(model)
        of_model.charge(tokens, now)

    def close(self, tenant: str, model: str, charged_tokens: int, used_tokens: int, now: float) -> None:
        """End a request: what it used is settled, the rest of the charge goes back. Use beyond the
        charge is charged and settled at once. One that used nothing was not served, and does not count."""
        self.accounts[tenant].close(charged_tokens, used_tokens, now)
        self.models[model].close(charged_tokens, used_tokens, now)

    def rate_limits(self, tenant: str, now: float) -> RateLimits | None:
        """What is left of a tenant's rates; None where it has none."""
        account = self._look(tenant)
        requests, tokens = account.requests_per_minute, account.tokens_per_minute
        if requests is None and tokens is None:
            return None
        return RateLimits(*_left(account.requests, requests, now), *_left(account.tokens, tokens, now))

    def view(self) -> dict[str, object]:
        """Sums over all tenants, in tokens; how many are known one by one; and those that are configured by name."""
        # By model, since each request has one and they are few, and none is ever forgotten.
        models = [*self.models.values()]
        return {
            "tenants": len(self.accounts),
            "in_flight": sum([each.in_flight for each in models]),
            "charged_tokens": sum([each.charged for each in models]),
            "settled_tokens": sum([each.settled for each in models]),
            "refunded_tokens": sum([each.refunded for each in models]),
            "open_tokens": sum([each.open for each in models]),
            "named": {
                name: {"in_flight": own.in_flight, "settled_tokens": own.settled, "open_tokens": own.open}
                for name in self._tenants.named
                if (own := self.accounts.get(name)) is not None
            },
        }

    def _look(self, tenant: str) -> Account:
        """Its account, or what its account would be: a tenant that was never charged is not remembered."""
        account = self.accounts.get(tenant)
        if account is None:
            account = Account()
            self._bound(account, tenant)
        return account

    def _open(self, tenant: str, now: float) -> Account:
        account = self.accounts[tenant] = Account()
        self._bound(account, tenant)
        if len(self.accounts) > MOST_ACCOUNTS:
            self._forget(now)
        return account

    def _bound(self, account: Account, tenant: str) -> None:
        own, everybody = self._tenants.named.get(tenant, _AS_EVERYBODY), self.config
        account.bound(
            everybody.max_in_flight if own.max_in_flight is None else own.max_in_flight,
            everybody.requests_per_minute if own.requests_per_minute is None else own.requests_per_minute,
            everybody.tokens_per_minute if own.tokens_per_minute is None else own.tokens_per_minute,
        )

    def _new_model(self, model: str) -> Account:
        account = Account()
        self._bound_model(account, model)
        return account

    def _bound_model(self, account: Account, model: str) -> None:
        known = self._models.of(model)
        account.bound(None, known.requests_per_minute, known.tokens_per_minute)

    def _forget(self, now: float) -> None:
        """Look at the oldest few: those that are idle go, the others go to the end."""
        for name in [*islice(self.accounts, LOOKS)]:
            account = self.accounts.pop(name)
            if not account.is_idle(now):
                self.accounts[name] = account


_AS_EVERYBODY = TenantConfig()


def _left(bucket: Bucket, per_minute: int | None, now: float) -> tuple[int, int, float]:
    if per_minute is None:
        return 0, 0, 0.0
    spent = bucket.settle_to(per_minute, now)
    return per_minute, max(0, int(per_minute - spent)), spent * 60.0 / per_minute
