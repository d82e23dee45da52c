"""How much of their declared bound the answers of one upstream are expected to use.

Mode ``learned`` reserves, instead of the bound M that a client declares, a quantile of what answers with such
a bound turned out to be, and more when an answer outgrows that. At ``written`` tokens (0 at admission):

    left   = blend(own, blend(all, M − written))        own: this tenant's answers, all: everybody's
    blend  = Z × learned + (1 − Z) × wider, Z = n ÷ (n + K)      n: remembered answers longer than ``written``
    reserve = written + left + caution × (M − written − left)

Z is Bühlmann's credibility factor: a tenant with few answers is judged by all, and an upstream with few by
what its clients declare. Lengths are kept per power of two of M, as shares of M (``lengths``).

An answer that comes whole cannot be watched while it grows, so it gets at least the ``UNSEEN`` quantile at once.

The quantile steers itself to its promise: after each answer whose reservation was learned,
level += STEP × (quantile − [it was enough]), the adaptive conformal rule (Gibbs and Candès 2021), so that in
the long run ``quantile`` of the streams fit in what was reserved, whatever the traffic does. ``caution`` is
the brake for what that cannot see: each reading that shows new preemptions doubles it, up to worst case, and
it fades within ``FADE_S``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from tidegate.policy.lengths import LengthHistory
from tidegate.policy.request import Request
from tidegate.policy.slots import SlotsConfig

OWN_WEIGHT, ALL_WEIGHT = 20, 8
"""K of the tenant's and of everybody's answers: with so many of them they count half."""
MOST_TENANTS = 200
"""Remembered apart; the one unused for longest goes first."""
MOST_KEPT_TENANTS = 10
"""Of these, the latest that outlive a restart; the others are judged by all until they are known again. What is kept
goes to the parent in one message, and 200 tenants of eight models would not fit in it."""
STEP = 0.01
"""Weight of one answer in the level: the last hundred count."""
UNSEEN = 0.9
FIRST_CAUTION = 0.25
FADE_S = 300.0
"""From worst case to none, without a preemption."""


class Expectation:
    """Of one upstream."""

    __slots__ = ("_all", "_observed_at", "_own", "caution", "config", "covered", "judged", "level")

    def __init__(self, config: SlotsConfig) -> None:
        self.config = config
        self.level = config.quantile
        """The quantile that is asked of the histories; moves so that ``config.quantile`` comes out."""
        self.caution = 0.0
        """0: as learned; 1: worst case."""
        self.judged = 0
        """Streams whose reservation was learned."""
        self.covered = 0
        """Of these, the ones for which it was enough."""
        self._all = LengthHistory()
        self._own: OrderedDict[str, LengthHistory] = OrderedDict()
        self._observed_at = 0.0

    def reserved_tokens(self, request: Request, most_tokens: int, written_tokens: int = 0) -> int:
        """Output tokens to reserve for one sequence that may write ``most_tokens`` and has written some.
        More than it has written, where the bound allows, and at most the bound."""
        most_left = max(0, most_tokens - written_tokens)
        level = self.level if request.streaming else max(UNSEEN, self.level)
        left = _blend(self._all, ALL_WEIGHT, most_tokens, written_tokens, level, float(most_left))
        own = self._own.get(request.tenant)
        if own is not None:
            left = _blend(own, OWN_WEIGHT, most_tokens, written_tokens, level, left)
        left += self.caution * (most_left - left)
        return written_tokens + min(most_left, max(1, round(left)))

    def learn(self, request: Request, most_tokens: int, output_tokens: int, expected_tokens: int) -> None:
        """An answer came to its end by itself; ``expected_tokens`` were reserved for it at admission."""
        if most_tokens < 1:
            return
        if expected_tokens < most_tokens and request.streaming:
            is_covered = output_tokens <= expected_tokens
            self.judged += 1
            self.covered += is_covered
            self.level = min(1.0, max(0.0, self.level + STEP * (self.config.quantile - is_covered)))
        self._all.record(most_tokens, output_tokens)
        tenant = request.tenant
        own = self._own.get(tenant)
        if own is None:
            if len(self._own) >= MOST_TENANTS:
                self._own.popitem(last=False)
            own = self._own[tenant] = LengthHistory()
        self._own.move_to_end(tenant)
        own.record(most_tokens, output_tokens)

    def observe(self, preemptions: int, now: float) -> None:
        """A reading of one replica came, with so many preemptions since its last."""
        elapsed_s = max(0.0, now - self._observed_at) if self._observed_at else 0.0
        self._observed_at = now
        self.caution = max(0.0, self.caution - elapsed_s / FADE_S)
        if preemptions > 0:
            self.caution = min(1.0, max(FIRST_CAUTION, 2 * self.caution))

    def reconfigure(self, config: SlotsConfig) -> None:
        if config.quantile != self.config.quantile:
            self.level = config.quantile
        self.config = config

    def view(self) -> dict[str, object]:
        return {
            "mode": self.config.mode,
            "quantile": self.config.quantile,
            "level": self.level,
            "caution": self.caution,
            "judged": self.judged,
            "covered": self.covered,
            "answers": len(self._all),
            "tenants": len(self._own),
        }

    def dump(self) -> dict[str, object]:
        return {
            "level": self.level,
            "all": self._all.dump(),
            "own": {tenant: self._own[tenant].dump() for tenant in [*self._own][-MOST_KEPT_TENANTS:]},
        }

    def restore(self, state: Mapping[str, object]) -> None:
        """Raises ValueError or KeyError for anything that ``dump`` does not give."""
        level, own = state["level"], state["own"]
        if not isinstance(level, float) or not 0.0 <= level <= 1.0 or not isinstance(own, Mapping):
            raise ValueError("this is not what Expectation.dump returns")
        everybody = _history(state["all"])
        tenants = OrderedDict((str(tenant), _history(each)) for tenant, each in own.items())
        self.level, self._all, self._own = level, everybody, tenants


def _blend(
    history: LengthHistory, weight: int, most_tokens: int, written_tokens: int, level: float, wider: float
) -> float:
    longer, left = history.left(most_tokens, written_tokens, level)
    return (longer * left + weight * wider) / (longer + weight)


def _history(state: object) -> LengthHistory:
    history = LengthHistory()
    history.restore(state)
    return history
