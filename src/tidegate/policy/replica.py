"""One engine server as placement sees it: what it holds, what it may get, and how it has behaved."""

from __future__ import annotations

from tidegate.policy.breaker import Breaker, BreakerConfig, State
from tidegate.policy.cache_account import CacheAccount
from tidegate.policy.class_shares import ClassShares
from tidegate.policy.decisions import Reason
from tidegate.policy.estimates import LatencyFit
from tidegate.policy.foreign import ForeignLoad, confirmed_aborts
from tidegate.policy.groups import Group
from tidegate.policy.limits.adaptive import AdaptiveLimit, LimitConfig
from tidegate.policy.limits.horizon import Horizon
from tidegate.policy.limits.prefill import FEW_SAMPLES, PrefillConfig, prefill_bound_tokens
from tidegate.policy.motion import Motion
from tidegate.policy.pace import Pace
from tidegate.policy.permit import Permit, PermitState
from tidegate.policy.reading import Reading, ReplicaConfig
from tidegate.policy.request import NEVER, Request
from tidegate.policy.slots import Slots

SAMPLES_PER_S = 256.0
STALLED_S = 1.0
LEAST_WARMTH = 0.1
"""A replica that has just come back costs at most ten times what it would (Envoy's min_weight_percent is 10 %)."""

# A look into an Enum class costs about a microsecond in Python 3.11, and these are needed for every request.
_CLOSED = State.CLOSED
_RESERVED, _USED, _SETTLED = PermitState.RESERVED, PermitState.USED, PermitState.SETTLED


class Replica:
    """State of one replica. Own accounting first (R1); readings correct it."""

    __slots__ = (
        "_foreign",
        "_sampled_at",
        "_samples_left",
        "aborting",
        "bound_tokens",
        "breaker",
        "cache",
        "config",
        "draining",
        "first_token",
        "foreign_sequences",
        "group",
        "horizon",
        "in_flight",
        "is_banned",
        "is_excused",
        "limit",
        "marked_until",
        "motion",
        "name",
        "pace",
        "pending_tokens",
        "permits",
        "read_at",
        "reading",
        "ready",
        "shares",
        "slot_bytes",
        "slots",
        "slow_start_s",
        "token_s",
        "warm_at",
        "warms_for_s",
        "whole",
    )

    def __init__(
        self,
        config: ReplicaConfig,
        limit: LimitConfig,
        prefill: PrefillConfig,
        breaker: BreakerConfig,
        slow_start_s: float = 0.0,
    ) -> None:
        self.config = config
        self.name = config.name
        self.slots = Slots(config.capacity)
        self.group: Group | None = None
        """The part of a shared pool that it uses; None: its pool is its own."""
        self.slot_bytes = config.capacity.slot_bytes
        self.limit = AdaptiveLimit(limit, config.capacity.sequences)
        self.breaker = Breaker(breaker)
        self.ready = True
        self.draining = False
        self.marked_until = 0.0
        """It is under a mark until then and gets nothing; 0.0: under none."""
        self.is_banned = self.is_excused = False
        """Neither its mark nor its breaker keeps requests away at this moment: a panic."""
        self.motion = Motion()
        self.pace: Pace | None = None
        """For its peers to be compared with; None: it has none."""
        self.in_flight = 0
        """Sequences of our permits, unconfirmed aborts included."""
        self.pending_tokens = 0
        """Prompt tokens of admitted streams that have no first token yet."""
        self.shares = ClassShares({})  # What each service class holds of it, and may hold.
        self.permits: dict[int, Permit] = {}
        """Everything that holds something here, by permit id."""
        self.aborting: list[Permit] = []
        self.foreign_sequences = 0
        self.reading: Reading | None = None
        self.first_token = LatencyFit()
        """Seconds to the first token over prefill tokens pending at admission (streams)."""
        self.whole = LatencyFit()
        """Seconds to the last token over output tokens."""
        self.token_s = 0.0
        """Slope of ``first_token``: seconds per prefill token; 0.0 while unknown."""
        self.horizon = Horizon(prefill)
        self.bound_tokens = prefill_bound_tokens(prefill, self.first_token, prefill.horizon_s)
        self.slow_start_s = slow_start_s
        self.read_at = 0.0
        """When it last showed a first token, or began to have prompts to read."""
        self.warm_at = 0.0
        """When its slow start is over."""
        self.warms_for_s = 0.0
        """How long that was to take when it began."""
        self.cache = CacheAccount()
        self._foreign = ForeignLoad()
        self._samples_left = SAMPLES_PER_S
        self._sampled_at = 0.0

    @property
    def serves(self) -> bool:
        """It is up, and may be given requests."""
        return self.ready and not self.draining and not self.is_banned

    def is_usable(self, now: float) -> bool:
        """It serves, and neither a breaker nor a mark is in the way."""
        return self.serves and self.breaker.state is _CLOSED and self.marked_until <= now

    def set_aside(self, until: float, *, is_banned: bool) -> None:
        """A mark holds until then; ``is_banned``: by order, so that it serves in no panic either."""
        self.marked_until, self.is_banned = until, is_banned

    def end_mark(self, now: float) -> None:
        """Its mark is over, or was lifted."""
        self.marked_until, self.is_banned = 0.0, False
        self.start_slowly(now)

    def opens_at(self, after: float) -> float:
        """The next moment later than ``after`` at which a breaker or a mark may let more through by time alone."""
        at = self.breaker.opens_at(after)
        return self.marked_until if after < self.marked_until < at else at

    def wake(self, now: float) -> None:
        """Take note of what time has ended: a mark, a breaker's cooldown."""
        if 0.0 < self.marked_until <= now:
            self.end_mark(now)
        if self.breaker.state is not _CLOSED:
            self.breaker.allows(now)

    def start_slowly(self, now: float) -> None:
        """It is new or has come back: its part of the traffic grows from now on."""
        self.warms_for_s = self.slow_start_s
        self.warm_at = now + self.warms_for_s

    def warmth(self, now: float) -> float:
        """Part of its usual traffic that it is given before ``warm_at``."""
        return max(LEAST_WARMTH, 1.0 - (self.warm_at - now) / self.warms_for_s)

    def is_reading(self, now: float) -> bool:
        """It gets on with the prompts that it has: a first token came no longer ago than they all should take twice."""
        return now - self.read_at <= STALLED_S + 2.0 * self.pending_tokens * self.token_s

    def gate(self, request: Request, output_tokens: int, now: float, unread_tokens: int | None = None) -> Reason | None:
        """The first gate that is closed for a request, or None. Takes nothing.

        ``unread_tokens``: of its prompt, those to compute here; None: all.
        """
        if not self.ready or self.draining:
            return Reason.NO_REPLICA
        sequences, prompt_tokens = request.sequences, request.prompt_tokens
        is_odd = self.marked_until or self.breaker.state is not _CLOSED
        if is_odd and self._keeps_away(prompt_tokens + output_tokens, now):
            return Reason.BREAKER
        most = self.config.capacity.sequences
        if most is not None and self.in_flight + self.foreign_sequences + sequences > most:
            return Reason.SEQUENCES
        slots = self.slots
        if slots.total is not None and not slots.fits(slots.needed(prompt_tokens, output_tokens, sequences)):
            return Reason.SLOTS
        if self.in_flight + sequences > self.limit.value and not self.limit.allows(self.in_flight, sequences):
            return Reason.LIMIT
        if self.pending_tokens and request.streaming and self.horizon.config.enabled:
            why = self._prefill_gate(request.service_class, prompt_tokens if unread_tokens is None else unread_tokens)
            if why is not None:
                return why
        if self.shares.is_active and self._is_share_used(request, output_tokens):
            return Reason.CLASS_SHARE
        if self.group is not None:
            return self._group_gate(self.group, request, output_tokens, now)
        return None

    def _keeps_away(self, tokens: int, now: float) -> bool:
        """A mark or its breaker keeps a request of so many tokens from it."""
        if self.is_excused:
            return False
        if self.marked_until:
            if now < self.marked_until:
                return True
            self.end_mark(now)
        return self.breaker.state is not _CLOSED and not self.breaker.allows(now, tokens)

    def _prefill_gate(self, service_class: str, unread_tokens: int) -> Reason | None:
        """A class that may hold a part of the replica finds its bound lower; the rest is for the others."""
        pending, bound, share = self.pending_tokens, self.bound_tokens, self.shares.most(service_class)
        if pending + unread_tokens > bound:
            self.horizon.is_reached = True
            return Reason.PREFILL
        return Reason.CLASS_SHARE if pending + unread_tokens > share * bound else None

    def _is_share_used(self, request: Request, output_tokens: int) -> bool:
        """Whether its class, or what is kept for others, bars a request that all else would let pass."""
        shares, name = self.shares, request.service_class
        if not shares.concerns(name):
            return False
        most = self.config.capacity.sequences
        at_once = min(self.limit.value if self.limit.config.enabled else NEVER, NEVER if most is None else most)
        held = self.in_flight + self.foreign_sequences
        if at_once < NEVER and shares.bars(name, request.sequences, held, at_once, in_slots=False):
            return True
        slots = self.slots
        if slots.total is None:
            return False
        wanted = slots.needed(request.prompt_tokens, output_tokens, request.sequences)
        return shares.bars(name, wanted, slots.held + slots.foreign, slots.total, in_slots=True)

    def load(self) -> float:
        """The fuller of sequences and KV slots, from 0; above 1 with load that is not ours."""
        most, slots = self.config.capacity.sequences, self.slots
        at_once = self.limit.value if most is None else min(self.limit.value, most)
        of_sequences = (self.in_flight + self.foreign_sequences) / at_once
        return max(of_sequences, (slots.held + slots.foreign) / slots.total if slots.total else 0.0)

    def _group_gate(self, group: Group, request: Request, output_tokens: int, now: float) -> Reason | None:
        """The last of the gates, so that who stands before it would use the memory at once."""
        need = self.slots.needed(request.prompt_tokens, output_tokens, request.sequences)
        return None if group.admits(need * self.slot_bytes, now) else Reason.GROUP_SHARE

    def may_learn(self, now: float) -> bool:
        """A few hundred samples a second say as much as all of them, and cost less than a busy
        gateway has: SAMPLES_PER_S on average, and as many at once, such as a batch's first tokens."""
        left = self._samples_left + (now - self._sampled_at) * SAMPLES_PER_S
        left = SAMPLES_PER_S if left > SAMPLES_PER_S else left
        self._sampled_at = now
        if left < 1.0:
            self._samples_left = left
            return False
        self._samples_left = left - 1.0
        return True

    def take(self, permit: Permit) -> None:
        """Commit a placement: slots, limit place, probe and pending prefill in one step."""
        permit.generation = self.breaker.generation
        permit.probe = self.breaker.take()
        self.permits[permit.id] = permit
        self.slots.reserved += permit.slots
        self.in_flight += permit.sequences
        if self.shares.is_active:
            self.shares.take(permit, permit.sequences, permit.slots)
        if self.group is not None:
            permit.pool_bytes = permit.slots * self.slot_bytes
            self.group.take(permit.pool_bytes)
        # The end of a prefill shows only in a stream; other answers come whole, much later.
        if permit.pending_tokens:
            if self.pending_tokens == 0:
                self.read_at = permit.admitted_at
            self.pending_tokens += permit.prompt_tokens - permit.cached_tokens

    def started(self, permit: Permit) -> None:
        """The first byte has come."""
        self.slots.start(permit.slots)
        self.motion.at = permit.first_token_at
        if permit.pending_tokens:
            self.pending_tokens -= permit.prompt_tokens - permit.cached_tokens
            self.read_at = permit.first_token_at
        permit.state = _USED

    def grow(self, permit: Permit, slots: int) -> None:
        """A running attempt needs so many more slots than it has."""
        self.slots.in_use += slots
        permit.slots += slots
        self.shares.take(permit, 0, slots)
        if self.group is not None:
            more_bytes = slots * self.slot_bytes
            permit.pool_bytes += more_bytes
            self.group.take(more_bytes)

    def let_go(self, permit: Permit, *, still_running: bool, now: float) -> None:
        """End an attempt; an unconfirmed abort keeps its slots and its place (R3)."""
        if permit.state is _RESERVED and permit.pending_tokens:
            self.pending_tokens -= permit.prompt_tokens - permit.cached_tokens
        if still_running:
            if permit.state is PermitState.RESERVED:
                self.slots.start(permit.slots)
            permit.state = PermitState.ABORTING
            permit.abort_by = now + self.config.abort_grace_s
            self.aborting.append(permit)
            return
        self._free(permit, now, started=permit.state is _USED)

    def confirm(self, permit: Permit, now: float) -> None:
        """The engine has stopped an aborted attempt, or is presumed to have."""
        self.aborting.remove(permit)
        self._free(permit, now, started=True)

    def _free(self, permit: Permit, now: float, *, started: bool) -> None:
        self.slots.release(permit.slots, started=started)
        if self.group is not None:
            self.group.give_back(permit.pool_bytes, now)
        self.in_flight -= permit.sequences
        if self.shares.is_active:
            self.shares.take(permit, -permit.sequences, -permit.slots)
        del self.permits[permit.id]
        permit.state = _SETTLED

    def learn_first_token(self, permit: Permit, seconds: float) -> None:
        if self.pace is not None:
            self.pace.note_first(permit.pending_tokens, seconds)
        if self._is_calm():
            self.first_token.learn(permit.pending_tokens, seconds)
            known = self.first_token.samples >= FEW_SAMPLES
            self.token_s = self.first_token.per_unit_s if known else 0.0
            self.bind()

    def judge_pace(self, *, late: bool, now: float) -> None:
        """An answer kept the pace that its class wants, or not."""
        if self.horizon.judge(late=late, now=now):
            self.bind()

    def bind(self) -> None:
        """Take what was learned into the bound on queued prefill."""
        horizon = self.horizon
        self.bound_tokens = prefill_bound_tokens(horizon.config, self.first_token, horizon.value_s)

    def learn_whole(self, output_tokens: int, seconds: float) -> None:
        if self._is_calm():
            self.whole.learn(output_tokens, seconds)

    def _is_calm(self) -> bool:
        """Under half of its limit a replica shows what it can do; above, what it suffers. At the least
        limit all is shown, or an engine that has become slower for good would never be known anew."""
        return self.in_flight <= max(self.limit.config.minimum, self.limit.value / 2)

    def observe(self, reading: Reading) -> list[Permit]:
        """Take a reading; returns the aborted permits that it shows to be over."""
        if self.reading is not None and reading.at < self.reading.at:
            return []
        self.cache.observe(self.reading, reading)
        self.motion.note(self.reading, reading)
        if reading.ready and (not self.ready or (self.reading is not None and reading.counts_anew(self.reading))):
            self._come_back(reading.at)
        self.reading = reading
        self.ready = reading.ready
        if not reading.ready:
            return [*self.aborting]
        self._note_foreign(reading)
        if not self.config.confirms_aborts:
            return []
        return confirmed_aborts(self.aborting, self.permits.values(), reading, self.config.abort_grace_s)

    def _come_back(self, now: float) -> None:
        self.start_slowly(now)
        self.breaker.look_again(now)
        self.motion.come_back(now)
        if self.pace is not None:
            self.pace.forget()

    def _note_foreign(self, reading: Reading) -> None:
        """Load that is not ours."""
        slots, before = self.slots, self.slots.foreign
        found = self._foreign.note(reading, self.in_flight, slots.held, slots.slot_tokens)
        self.foreign_sequences, slots.foreign = found
        if self.group is not None and slots.foreign != before:
            self.group.note_foreign((slots.foreign - before) * self.slot_bytes)

    def reconfigure(
        self,
        config: ReplicaConfig,
        limit: LimitConfig,
        prefill: PrefillConfig,
        breaker: BreakerConfig,
        slow_start_s: float,
        now: float,
    ) -> None:
        self.config = config
        self.slow_start_s = slow_start_s
        self.slots.resize(config.capacity)
        self.slot_bytes = config.capacity.slot_bytes
        self.limit.reconfigure(limit)
        self.breaker.reconfigure(breaker, now)
        self.horizon.reconfigure(prefill)
        self.bind()
