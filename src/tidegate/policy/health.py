"""How a model is doing, as a client feels it: what an agent asks before a call (SPEC S0-57, S0-58).

Over the last ``window_s``, of the requests that asked for the model:

    p90 = P90 of arrival → first byte, of streams            p90 whole = of arrival → end, of good answers
    error_rate = errors ÷ (good + degraded + errors)         shed_rate = shed ÷ (all of these + shed)

*Errors* are attempts that failed through no fault of the client, and requests for which no replica was left. *Shed* are
refusals for load: the queue, a deadline, a rate of the model. *Degraded* are answers of the ladder. They are counted
apart, so that shedding cannot make a model look well and a stored answer is no success. Clients who leave, mistakes,
marks and a tenant's own quota say nothing about the model.

States, the first that holds: ``down`` (no replica is up, or nothing but errors), ``overloaded`` (more than
``shed_share`` shed, or a newcomer would wait longer than ``p90_s``), ``degraded`` (more than ``error_share`` failed or
degraded, or the P90 above ``p90_s``), ``ok``. Too few requests in the window leave its figures out, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.policy.classes import INTERACTIVE
from tidegate.policy.decisions import Reason
from tidegate.policy.health_config import HealthConfig
from tidegate.policy.outcomes import Outcome
from tidegate.policy.record import Record
from tidegate.policy.upstream import Upstream

SLICES = 6
MOST_SAMPLES = 64
"""Latencies kept of one slice: the latest ones."""
FEW_REQUESTS = 5
"""Fewer in the window decide no state."""
ASK_AGAIN_S = 1.0
"""Of a model that is down: a replica that comes back is found within this time."""

SHED = frozenset(
    {
        Reason.MODEL_RATE,
        Reason.QUEUE_FULL,
        Reason.QUEUE_TOKENS,
        Reason.QUEUE_BYTES,
        Reason.DEADLINE_UNREACHABLE,
        Reason.QUEUE_TIMEOUT,
    }
)
FAILED = frozenset({Reason.NO_REPLICA, Reason.RETRY_ALLOWANCE})

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_OK = Outcome.OK
_NOT_OURS = frozenset({Outcome.CLIENT_LEFT, Outcome.CLIENT_FAULT, Outcome.SHUTDOWN})


class Slice:
    """What ended in a sixth of the window."""

    __slots__ = ("degraded", "ends_at", "errors", "first_s", "good", "shed", "whole_s")

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.good = self.degraded = self.errors = self.shed = 0
        self.first_s: list[float] = []
        self.whole_s: list[float] = []

    def note_good(self, record: Record) -> None:
        """An answer that was asked for, and ended well."""
        request, count = record.request, self.good
        self.good = count + 1
        if count < MOST_SAMPLES:
            self.whole_s.append(record.closed_at - request.arrived_at)
            if request.streaming:
                self.first_s.append(record.first_token_at - request.arrived_at)
            return
        place = count % MOST_SAMPLES
        self.whole_s[place] = record.closed_at - request.arrived_at
        if request.streaming and self.first_s:
            self.first_s[place % len(self.first_s)] = record.first_token_at - request.arrived_at

    def note_other(self, record: Record) -> None:
        """Any other end."""
        outcome = record.outcome
        if record.degraded is not None:
            self.degraded += 1
        elif record.refused is not None:
            if record.refused in SHED:
                self.shed += 1
            elif record.refused in FAILED:
                self.errors += 1
        elif outcome is not None and outcome not in _NOT_OURS:
            self.errors += 1


class ModelHealth:
    """The slices of one model, the oldest first."""

    __slots__ = ("ends_at", "slices")

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.ends_at = 0.0
        """Of the last one."""

    def note(self, record: Record, slice_s: float) -> None:
        """A request was closed."""
        if record.closed_at >= self.ends_at:
            self._turn(record.closed_at, slice_s)
        if record.outcome is _OK and record.refused is None and record.degraded is None:
            self.slices[-1].note_good(record)
        else:
            self.slices[-1].note_other(record)

    def _turn(self, now: float, slice_s: float) -> None:
        self.ends_at = (int(now / slice_s) + 1) * slice_s
        self.slices.append(Slice(self.ends_at))
        self.forget(self.ends_at, slice_s)

    def forget(self, ends_at: float, slice_s: float) -> None:
        """Slices that the window no longer holds when the current one ends at ``ends_at``."""
        oldest = ends_at - (SLICES - 0.5) * slice_s
        while self.slices and self.slices[0].ends_at < oldest:
            del self.slices[0]


class Health:
    __slots__ = ("_models", "_upstreams", "config")

    def __init__(self, upstreams: Mapping[str, Upstream], config: HealthConfig) -> None:
        self._upstreams = upstreams
        self._models: dict[str, ModelHealth] = {}
        self.config = config

    def note(self, record: Record) -> None:
        """A request was closed. One for a model that does not exist leaves no trace."""
        # What was asked for: another model may have served it.
        name = record.model or record.request.upstream
        model = self._models.get(name)
        if model is None:
            if name not in self._upstreams:
                return
            model = self._models[name] = ModelHealth()
        model.note(record, self.config.window_s / SLICES)

    def reconfigure(self, config: HealthConfig) -> None:
        """Another window begins empty; models that are gone are forgotten."""
        is_same = config.window_s == self.config.window_s
        self._models = {name: each for name, each in self._models.items() if is_same and name in self._upstreams}
        self.config = config

    def report(self, name: str, now: float) -> dict[str, object] | None:
        """Of one model; None: there is none of this name."""
        upstream = self._upstreams.get(name)
        if upstream is None:
            return None
        model = self._models.get(name) or ModelHealth()
        slice_s = self.config.window_s / SLICES
        model.forget((int(now / slice_s) + 1) * slice_s, slice_s)
        return self._report(upstream, model.slices, now)

    def reports(self, now: float) -> list[dict[str, object]]:
        """Of every model."""
        found = [self.report(name, now) for name in self._upstreams]
        return [each for each in found if each is not None]

    def _report(self, upstream: Upstream, slices: list[Slice], now: float) -> dict[str, object]:
        good, degraded = sum(each.good for each in slices), sum(each.degraded for each in slices)
        errors, shed = sum(each.errors for each in slices), sum(each.shed for each in slices)
        ended = good + degraded + errors
        p90_s = _p90([each.first_s for each in slices])
        wait_s = predicted_wait_s(upstream, now)
        rates = (_share(errors, ended), _share(shed, ended + shed), _share(degraded, ended))
        state = self._state(upstream, ended + shed, rates, p90_s, wait_s)
        retry_after_s = {"down": ASK_AGAIN_S, "overloaded": max(ASK_AGAIN_S, wait_s)}.get(state, 0.0)
        return {
            "model": upstream.name,
            "state": state,
            "p90_ms": _ms(p90_s),
            "error_rate": rates[0],
            "p90_whole_ms": _ms(_p90([each.whole_s for each in slices])),
            "shed_rate": rates[1],
            "degraded_rate": rates[2],
            "requests": ended + shed,
            "window_s": self.config.window_s,
            "queue_depth": upstream.queue.requests,
            "predicted_wait_ms": _ms(wait_s),
            "retry_after_ms": _ms(retry_after_s),
            "replicas_up": sum(replica.serves for replica in upstream.replicas),
            "replicas_usable": sum(replica.is_usable(now) for replica in upstream.replicas),
        }

    def _state(
        self,
        upstream: Upstream,
        requests: int,
        rates: tuple[float, float, float],
        p90_s: float | None,
        wait_s: float,
    ) -> str:
        config, (errors, shed, degraded) = self.config, rates
        is_telling = requests >= FEW_REQUESTS
        if not any(replica.serves for replica in upstream.replicas) or (is_telling and errors == 1.0):
            return "down"
        if wait_s > config.p90_s or (is_telling and shed > config.shed_share):
            return "overloaded"
        is_slow = p90_s is not None and p90_s > config.p90_s
        if is_telling and (is_slow or errors + degraded > config.error_share):
            return "degraded"
        return "ok"


def predicted_wait_s(upstream: Upstream, now: float) -> float:
    """How long an interactive newcomer would stand in the queue; 0.0 where nobody stands, or no rate is known."""
    tokens = upstream.queue.lines[INTERACTIVE].tokens
    rate = upstream.tokens_per_s(INTERACTIVE, now) if tokens else None
    return 0.0 if rate is None else tokens / rate


def _p90(samples: list[list[float]]) -> float | None:
    """By the nearest rank; None of nothing."""
    ordered = sorted(seconds for each in samples for seconds in each)
    return ordered[(9 * len(ordered) + 9) // 10 - 1] if ordered else None


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
