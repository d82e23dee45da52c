"""Whether a model has become slow though nobody waits for it, so that the lighter one should answer meanwhile.

    pace      seconds to the first byte ÷ (prompt tokens queued before it, its own included + 512)
    usual     median of the last good paces, at least ``FEW`` of them
    slow      pace > slow_ratio × usual, or no first byte yet though that time is over, or a first-byte timeout
    begins    ``slow_count`` slow ones in a row, counting those that are overdue now
    while     every request goes to the lighter model, but for one probe at a time: ``PROBE_S`` after the last one
              came back, doubling with every slow one up to ``MOST_PROBE_S``
    ends      ``GOOD_PROBES`` good probes in a row

A breaker cannot see this: the last replica of a model is never left, and a model whose replicas all slow down together
has no better peers. The specification degrades on five timeouts in a row (S0-50) and "when a stage starts to slow"
(S0-53); paces in place of seconds, because a long prompt is no slow model. Streams only: the first byte of a whole
answer is its end, which says as much about its length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

from tidegate.policy.ladder import LadderConfig
from tidegate.policy.pace import EACH_PROMPT_TOKENS
from tidegate.policy.permit import Permit, PermitState

FEW, MOST = 30, 200
"""Good paces before there is a usual one, and how many are remembered."""
PROBE_S, MOST_PROBE_S = 5.0, 40.0
GOOD_PROBES = 3
LOOK_S = 0.1
"""How often it is looked for first bytes that are overdue."""

_RESERVED = PermitState.RESERVED


class Slowness:
    """Of one upstream whose ladder has a lighter model."""

    __slots__ = (
        "_good",
        "_looks_at",
        "_overdue",
        "_paces",
        "_probe",
        "_probe_s",
        "_probes_at",
        "_row",
        "_usual",
        "config",
        "is_slow",
    )

    def __init__(self, config: LadderConfig) -> None:
        self.config = config
        self.is_slow = False
        self._paces: deque[float] = deque(maxlen=MOST)
        self._usual: float | None = None
        """None: to be worked out anew."""
        self._row = 0
        self._overdue = 0
        self._looks_at = 0.0
        self._probe: int | None = None
        """Request that is on its way to find out."""
        self._probe_s = PROBE_S
        self._probes_at = 0.0
        self._good = 0

    def note(self, permit: Permit, seconds: float, now: float, *, timed_out: bool = False) -> None:
        """A first byte came after so long, or did not come."""
        ratio = self.config.slow_ratio
        if ratio is None or not permit.pending_tokens:
            return
        usual = self._known()
        pace = seconds / (permit.pending_tokens + EACH_PROMPT_TOKENS)
        slow = timed_out or (usual is not None and pace > ratio * usual)
        if self.is_slow:
            if permit.request_id == self._probe:
                self._judge(slow=slow, now=now)
        elif slow:
            self._row += 1
            self._weigh(now)
        else:
            self._row = 0
            self._paces.append(pace)
            self._usual = None

    def diverts(self, request_id: int, running: Iterable[Permit], now: float) -> bool:
        """Whether a request that has just come should go to the lighter model."""
        if not self.is_slow and now >= self._looks_at:
            self._looks_at = now + LOOK_S
            self._look(running, now)
        if not self.is_slow:
            return False
        if self._probe is None and now >= self._probes_at:
            self._probe = request_id
            return False
        return True

    def forget_probe(self, request_id: int) -> None:
        """A request is over; if it was the probe and told nothing, the next one takes its place."""
        if request_id == self._probe:
            self._probe = None

    def _look(self, running: Iterable[Permit], now: float) -> None:
        usual, ratio = self._known(), self.config.slow_ratio
        if usual is None or ratio is None:
            return
        self._overdue = 0
        for permit in running:
            if permit.state is _RESERVED and permit.pending_tokens:
                most_s = ratio * usual * (permit.pending_tokens + EACH_PROMPT_TOKENS)
                self._overdue += now - permit.admitted_at > most_s
        self._weigh(now)

    def _weigh(self, now: float) -> None:
        if self._row + self._overdue >= self.config.slow_count:
            self.is_slow, self._good, self._probe = True, 0, None
            self._probe_s, self._probes_at = PROBE_S, now + PROBE_S

    def _judge(self, *, slow: bool, now: float) -> None:
        self._probe = None
        self._good = 0 if slow else self._good + 1
        if slow:
            self._probe_s = min(MOST_PROBE_S, 2.0 * self._probe_s)
        self._probes_at = now + (self._probe_s if slow else 0.0)
        if self._good >= GOOD_PROBES:
            self.is_slow, self._row, self._overdue = False, 0, 0

    def _known(self) -> float | None:
        if self._usual is None and len(self._paces) >= FEW:
            self._usual = median(self._paces)
        return self._usual
