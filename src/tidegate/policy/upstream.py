"""One public model name: its replicas, its queue, and what can be said about waiting in it."""

from __future__ import annotations

from math import ceil

from tidegate.policy.balance.balancer import Balancer
from tidegate.policy.breaker import State
from tidegate.policy.burst import Burst
from tidegate.policy.decisions import Reason
from tidegate.policy.estimates import Mean
from tidegate.policy.expectation import Expectation
from tidegate.policy.giants import is_giant, is_quiet
from tidegate.policy.groups import Group
from tidegate.policy.ladder import LadderConfig
from tidegate.policy.line import Charge
from tidegate.policy.pace import Pace
from tidegate.policy.pacing import Pacing
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit
from tidegate.policy.queue import Queue
from tidegate.policy.reading import Reading
from tidegate.policy.relief import Relief
from tidegate.policy.replica import Replica
from tidegate.policy.request import ESTIMATE_SLACK, NEVER, Request
from tidegate.policy.slowness import Slowness
from tidegate.policy.ticket import Ticket

_GROUP_SHARE, _MODEL_CONCURRENCY = Reason.GROUP_SHARE, Reason.MODEL_CONCURRENCY
A_WAVE = 4

NEAR_SHARE = 0.75
"""Of the context: an estimate with its slack that is above may hide a prompt that is too long. Digits, code
and rare scripts have two to four times the tokens that their bytes let expect."""
FAR_SHARE = 4.0
"""Of the context: an estimate above it is left as it is, for no text is that much shorter in tokens."""


class Upstream:
    __slots__ = (
        "balancer",
        "burst",
        "claims",
        "classes",
        "concurrency",
        "context_tokens",
        "expectation",
        "giants",
        "is_bounded",
        "moved",
        "name",
        "output_tokens",
        "pacing",
        "prompt_tokens",
        "queue",
        "relief",
        "replicas",
        "serves_stored",
        "slowness",
        "wakes_at",
        "woken_at",
    )

    def __init__(self, name: str, config: PathConfig) -> None:
        self.name = name
        self.balancer = Balancer(config.balance)
        self.expectation = Expectation(config.slots)
        self.replicas: list[Replica] = []
        self.queue = Queue(config.queue, config.classes, config.tenants)
        self.giants = config.giants
        self.relief: Relief | None = None
        """None: there is no lighter model that long waits could be shortened with."""
        self.slowness: Slowness | None = None
        """None: there is no lighter model that could answer while it is slow."""
        self.serves_stored = False
        """Stored answers are served before any engine is asked."""
        self.prompt_tokens = Mean()
        """Of the requests that were offered."""
        self.output_tokens = Mean()
        """Of the answers that ended well, per sequence."""
        self.classes = config.classes.classes
        """As they wait for this model."""
        self.concurrency: int | None = None
        """Most sequences on all replicas together; None: no bound but theirs."""
        self.pacing = Pacing(config.pacing)
        self.burst = Burst(config.burst)
        self.moved = False
        """Something happened that may let a ticket go."""
        self.context_tokens: int | None = None
        """The longest context any replica offers; None if one of them does not say."""
        self.is_bounded = False
        """Every replica says how much it can hold at most."""
        self.claims: list[Group] = []
        """Under whose floor a request found no memory in the latest look at the queue."""
        self.wakes_at = NEVER
        """When a shared pool may have room though nothing happened."""
        self.woken_at = 0.0

    def reserved_output(self, request: Request) -> int:
        """Output tokens reserved per sequence."""
        slots = self.expectation.config
        most = slots.output_tokens(request, self.context_tokens)
        return self.expectation.reserved_tokens(request, most) if slots.learns else most

    def choose(self, request: Request, output_tokens: int, now: float, avoid: str | None = None) -> Replica | Reason:
        """The replica of least cost whose gates are all open, or the gate that bars the way."""
        if self.concurrency is not None and self._is_full(self.concurrency, request.sequences):
            return _MODEL_CONCURRENCY
        found = self.balancer.choose(request, output_tokens, now, avoid)
        if isinstance(found, Replica):
            return found
        if found is _GROUP_SHARE:
            self._claim(request, output_tokens, now)
        if self.is_in_panic(now):
            suspect = self.balancer.choose_suspect(request, output_tokens, now, avoid)
            return suspect if isinstance(suspect, Replica) else found
        return found

    def is_in_panic(self, now: float) -> bool:
        """Breakers and marks keep requests from so many of the replicas that are up that it is more likely the
        requests, or the judgement, than the replicas; or from all of them."""
        up = usable = 0
        for replica in self.replicas:
            if replica.serves:
                up += 1
                usable += replica.is_usable(now)
        return usable < up and (usable == 0 or usable < self.balancer.config.panic_share * up)

    def is_giant(self, prompt_tokens: int) -> bool:
        return is_giant(self.giants, prompt_tokens, self.prompt_tokens.value, self.replicas)

    def is_busy(self) -> bool:
        """No replica is quiet enough for a giant."""
        return not any(is_quiet(self.giants, replica) for replica in self.replicas)

    def heads(self, now: float) -> list[Ticket]:
        """Who may go from the queue, best first, without giants that are held."""
        heads = self.queue.heads()
        if heads and heads[0].held_until > now and self.is_busy():
            del heads[0]
        return heads

    def dispatch(self, ticket: Ticket, output_tokens: int, now: float) -> Charge:
        """A ticket goes; its tenant is charged what is expected of it."""
        each = min(float(output_tokens), self.output_tokens.value)
        return self.queue.dispatch(ticket, now, each * ticket.request.sequences)

    def _is_full(self, most: int, sequences: int) -> bool:
        running = sum([replica.in_flight for replica in self.replicas])
        return running > 0 and running + sequences > most

    def _claim(self, request: Request, output_tokens: int, now: float) -> None:
        for replica in self.replicas:
            group = replica.group
            if group is not None and replica.gate(request, output_tokens, now) is _GROUP_SHARE:
                slots = replica.slots.needed(request.prompt_tokens, output_tokens, request.sequences)
                if group.is_within_floor(slots * replica.slot_bytes):
                    self.claims.append(group)

    def may_open(self, replica: Replica) -> bool:
        """Whether this replica's breaker may open: only while another one stands in for it."""
        return any(
            other is not replica and other.serves and other.breaker.state is State.CLOSED and not other.marked_until
            for other in self.replicas
        )

    def tokens_per_s(self, service_class: str, now: float) -> float | None:
        """How fast prompt tokens of a class leave the queue; None where no rate is
        known yet. What was measured on a standing queue says more than what the replicas' prefill could do."""
        if self.classes[service_class].ttft_slo_s is None:
            rate = self.queue.owed_tokens_per_s(service_class, now)
        else:
            # Under an objective who waits long is refused anyway; by what is owed, some would be who are served.
            rate = self.queue.lines[service_class].tokens_per_s(now)
        if rate is None:
            rate = sum([1 / each.token_s for each in self.replicas if each.token_s > 0 and each.serves])
        return rate or None

    def wait_s(self, now: float) -> float | None:
        """Predicted wait of who comes last: all that stands in the queue, over what leaves it. None where no rate is
        known yet."""
        queue = self.queue
        if not queue.tokens:
            return 0.0
        rates = [line.tokens_per_s(now) for line in queue.lines.values() if line.requests]
        rate = sum([each for each in rates if each is not None])
        if not rate:
            rate = sum([1 / each.token_s for each in self.replicas if each.token_s > 0 and each.serves])
        return queue.tokens / rate if rate else None

    def is_open_for(self, most_wait_s: float, now: float) -> bool:
        """Something of it serves, and who comes now would wait less than that."""
        if not any(replica.serves for replica in self.replicas):
            return False
        wait_s = self.wait_s(now)
        return most_wait_s == NEVER or (wait_s is not None and wait_s < most_wait_s)

    def service_s(self, prompt_tokens: int, output_tokens: int) -> tuple[float, float]:
        """(to the first token, to the last) on the best replica; 0.0 where too little was seen. A
        wave of four answers is enough here: the estimate only stops work that would come late."""
        expected = min(float(output_tokens), self.output_tokens.value)
        first = [r.first_token.predict_s(prompt_tokens) for r in self.replicas if r.first_token.samples >= A_WAVE]
        whole = [r.whole.predict_s(expected) for r in self.replicas if r.whole.samples >= A_WAVE]
        return min(first, default=0.0), min(whole, default=0.0)

    def observe(self, replica_name: str, reading: Reading, now: float) -> list[Permit]:
        """Take a reading of a replica; returns the aborted permits that it shows to be over."""
        for replica in self.replicas:
            if replica.name == replica_name:
                before, confirmed = replica.reading, replica.observe(reading)
                self.moved = True
                if self.expectation.config.learns:
                    self.expectation.observe(reading.preemptions_since(before), now)
                return confirmed
        return []

    def next_wakeup(self) -> float | None:
        """When a waiting ticket may be decided though nothing happened."""
        expiry = self.queue.next_expiry()
        if expiry is None:
            return None
        giant = self.queue.giants.head()
        held_until = NEVER if giant is None or giant.held_until <= self.woken_at else giant.held_until
        opens = [replica.opens_at(self.woken_at) for replica in self.replicas]
        return min([expiry, self.wakes_at, held_until, self.pacing.opens_at or NEVER, *opens])

    def gathers(self, now: float) -> bool:
        """Whether a newcomer has to wait for others: pacing is on."""
        if not self.pacing.config.enabled:
            return False
        self.pacing.gather(self.load(), now)
        return self.pacing.is_gathering(now)

    def load(self) -> float:
        """The fuller of sequences and KV slots, of the replicas that serve, from 0 to 1 and above."""
        loads = [replica.load() for replica in self.replicas if replica.serves]
        return sum(loads) / len(loads) if loads else 0.0

    def wake(self, now: float) -> None:
        """Let breakers that have cooled become half-open, and giants that were held long enough go, so that none
        names a wakeup in the past."""
        giant = self.queue.giants.head()
        self.moved = self.moved or (giant is not None and self.woken_at < giant.held_until <= now)
        self.moved = self.moved or 0.0 < self.pacing.opens_at <= now
        for replica in self.replicas:
            if replica.opens_at(self.woken_at) <= now:
                replica.wake(now)
                self.moved = True
        self.woken_at = now

    def reconfigure(self, config: PathConfig, now: float) -> None:
        """Take what a reload says, of everything but the replicas."""
        self.queue.reclass(config.queue, config.classes, config.tenants, now)
        self.expectation.reconfigure(config.slots)
        self.balancer.config = config.balance
        self.giants, self.burst.config, self.pacing.config = config.giants, config.burst, config.pacing
        self.moved = True

    def adopt(self, config: PathConfig) -> None:
        """Take what a reload says of this model and of the classes; call after the replicas are there."""
        model = config.models.of(self.name)
        self.classes = model.classes(config.classes).classes
        self.concurrency = model.concurrency
        ladder = config.models.ladders.get(self.name, config.ladder)
        self.serves_stored = ladder.enabled and ladder.answers.serve_first
        self._follow(ladder)
        for replica in self.replicas:
            replica.shares.reconfigure(self.classes, tuple(replica.permits.values()))

    def _follow(self, ladder: LadderConfig) -> None:
        """Have long waits and slow answers made good by the lighter model, where there is one."""
        is_other = ladder.light_model != self.name
        if not (ladder.relieves and is_other):
            self.relief = None
        elif self.relief is None:
            self.relief = Relief(ladder)
            for line in (*self.queue.lines.values(), self.queue.giants):
                for ticket in line.tickets():
                    self.relief.note(ticket)
        else:
            self.relief.config = ladder
        if not (ladder.diverts and is_other):
            self.slowness = None
        elif self.slowness is None:
            self.slowness = Slowness(ladder)
        else:
            self.slowness.config = ladder

    def diverts(self, request: Request, now: float) -> bool:
        """It is slow, and who has just come is to be answered by the lighter model."""
        slowness = self.slowness
        if slowness is None or not request.streaming:
            return False
        running = (permit for replica in self.replicas for permit in replica.permits.values())
        return slowness.diverts(request.id, running, now)

    def survey(self) -> None:
        """Note what the present replicas can hold at most; call when they change."""
        self.balancer.follow(self.replicas)
        for replica in self.replicas:
            if len(self.replicas) == 1:
                replica.pace = None
            elif replica.pace is None:
                replica.pace = Pace()
        paces = [replica.pace for replica in self.replicas if replica.pace is not None]
        for pace in paces:
            pace.peers = tuple(each for each in paces if each is not pace)
        capacities = [replica.config.capacity for replica in self.replicas]
        contexts = [each.context_tokens for each in capacities]
        known = [tokens for tokens in contexts if tokens is not None]
        self.context_tokens = max(known) if known and len(known) == len(contexts) else None
        self.is_bounded = all(
            r.slots.total is not None or c.sequences or r.group is not None
            for r, c in zip(self.replicas, capacities, strict=True)
        )

    def ever_fits(self, request: Request, output_tokens: int) -> bool:
        """Whether some replica's whole pool and batch could hold this request."""
        return not self.is_bounded or self._hold(request.prompt_tokens, output_tokens, request.sequences)

    def hinges_on_count(self, request: Request, output_tokens: int) -> bool:
        """Whether an exact count could turn an estimated prompt from one that fits into one that never does, or
        the other way round."""
        context = self.context_tokens
        most = request.prompt_tokens * ESTIMATE_SLACK
        if context is not None and NEAR_SHARE * context < most <= FAR_SHARE * context:
            return True
        sequences = request.sequences
        if not self.is_bounded or self._hold(ceil(most), output_tokens, sequences):
            return False
        return self._hold(int(request.prompt_tokens / ESTIMATE_SLACK), output_tokens, sequences)

    def _hold(self, prompt_tokens: int, output_tokens: int, sequences: int) -> bool:
        for replica in self.replicas:
            total, most, group = replica.slots.total, replica.config.capacity.sequences, replica.group
            slots = replica.slots.needed(prompt_tokens, output_tokens, sequences)
            has_room = group is None or slots * replica.slot_bytes <= group.most_bytes
            if has_room and (total is None or slots <= total) and (most is None or sequences <= most):
                return True
        return not self.replicas
