"""A driver of random events over ``Path``: what the state machine and the long run both use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from tidegate.policy.decisions import Admit, Answer, Decision, Reason, Refuse, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, PermitState, Progress
from tidegate.policy.reading import Capacity, Reading, ReplicaConfig
from tidegate.policy.record import Record
from tidegate.policy.request import Request
from tidegate.policy.token_source import TokenSource

WAITING = {
    Reason.BEHIND_OTHERS,
    Reason.SLOTS,
    Reason.SEQUENCES,
    Reason.LIMIT,
    Reason.PREFILL,
    Reason.BREAKER,
    Reason.GROUP_SHARE,
    Reason.HELD,
    Reason.CLASS_SHARE,
    Reason.MODEL_CONCURRENCY,
}
"""Why a ticket waits; never the reason of a refusal."""


View = dict[str, dict[str, Any]]


def replica_config(name: str, upstream: str = "a", group: str | None = None, **capacity: int) -> ReplicaConfig:
    held = {"kv_tokens": 8192, "slot_tokens": 256, "sequences": 8, "context_tokens": 4096} | capacity
    return ReplicaConfig(name=name, upstream=upstream, capacity=Capacity(**held), confirms_aborts=True, group=group)


@dataclass
class Events:
    """Keeps the books a correct driver would keep, and checks Path against them."""

    path: Path
    now: float = 0.0
    next_id: int = 0
    waiting: dict[int, Request] = field(default_factory=dict)
    live: list[tuple[Request, Permit]] = field(default_factory=list)
    aborted: list[Permit] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    offered: int = 0
    insists: bool = False
    """A cut stream asks to go on elsewhere, and what failed asks for something instead."""

    def pass_time(self, seconds: float) -> None:
        """Move on, stopping at every wakeup and ending what has run too long, as a driver must."""
        end = self.now + seconds
        while due := [index for index, (_, permit) in enumerate(self.live) if permit.total_by <= end]:
            self._pass_to(max(self.now, self.live[due[0]][1].total_by))
            self.settle(due[0], Outcome.TOTAL_TIMEOUT)
        self._pass_to(end)

    def _pass_to(self, end: float) -> None:
        for _ in range(100_000):
            wakeup = self.path.next_wakeup()
            if wakeup is None or wakeup > end:
                break
            self.now = max(self.now, wakeup)
            self.advance()
        else:
            raise AssertionError("next_wakeup names the same moment for ever")
        self.now = end

    def offer(self, **fields: object) -> Decision:
        self.next_id += 1
        self.offered += 1
        request = Request(
            id=self.next_id,
            upstream=str(fields.pop("upstream", "a")),
            arrived_at=self.now,
            draw=self.next_id * 0x9E3779B97F4A7C15 % 2**64,
            **fields,  # type: ignore[arg-type]  # built from strategies, one type per field
        )
        decision = self.path.offer(request, self.now)
        if isinstance(decision, Wait):
            self.waiting[decision.ticket] = request
        else:
            self._take(request, decision)
        self.advance()
        return decision

    def _take(self, request: Request, decision: Admit | Refuse | Answer) -> None:
        if isinstance(decision, Admit):
            assert decision.permit.state is PermitState.RESERVED
            self.live.append((request, decision.permit))
        else:
            self._close(request)

    def _close(self, request: Request) -> None:
        self.records.append(self.path.close(request.id, self.now))

    def advance(self) -> None:
        for verdict in self.path.advance(self.now):
            request = self.waiting.pop(verdict.ticket)
            assert request.id == verdict.request_id
            self._take(request, verdict.decision)

    def cancel(self, index: int) -> None:
        ticket = [*self.waiting][index % len(self.waiting)]
        request = self.waiting.pop(ticket)
        self.path.cancel(ticket, self.now)
        self._close(request)
        self.advance()

    def amend(self, index: int, prompt_tokens: int) -> None:
        """The exact size of a waiting prompt; whoever can never fit leaves."""
        ticket = [*self.waiting][index % len(self.waiting)]
        if self.path.amend(ticket, prompt_tokens, TokenSource.TOKENIZER, self.now) is not None:
            self._close(self.waiting.pop(ticket))
        self.advance()

    def first_token(self, index: int) -> None:
        fresh = [permit for _, permit in self.live if permit.state is PermitState.RESERVED]
        if fresh:
            self.path.progress(fresh[index % len(fresh)], Progress.FIRST_TOKEN, self.now)
            self.advance()

    def write(self, index: int, tokens: int) -> None:
        """A running stream has so many tokens by now; told when they pass what is reserved, as a driver must."""
        running = [permit for _, permit in self.live if permit.state is PermitState.USED]
        if running and running[index % len(running)].is_outgrown_by(tokens):
            self.path.progress(running[index % len(running)], Progress.TOKENS, self.now, tokens)
            self.advance()

    def settle(
        self,
        index: int,
        outcome: Outcome,
        *,
        still_running: bool = False,
        retry: bool = True,
        output_tokens: int = 10,
    ) -> None:
        request, permit = self.live.pop(index % len(self.live))
        first_try = self.path.find(request.id).attempts == 1
        self.path.settle(permit, outcome, self.now, output_tokens=output_tokens, still_running=still_running)
        if still_running:
            self.aborted.append(permit)
        effect, record = EFFECTS[outcome], self.path.find(request.id)
        if retry and first_try and effect.retry and record.first_token_at == 0.0:
            self._take(request, self.path.again(request.id, outcome, self.now))
        elif self.insists and effect.resume and record.first_token_at and output_tokens:
            self._take(request, self.path.again(request.id, outcome, self.now, written_tokens=output_tokens))
        elif self.insists and effect.mend and record.first_token_at == 0.0:
            self._take(request, self.path.instead(request.id, outcome, self.now))
        else:
            self._close(request)
        self.advance()

    def confirm(self, index: int) -> None:
        permit = self.aborted.pop(index % len(self.aborted))
        self.path.progress(permit, Progress.ABORTED, self.now)
        self.advance()

    def observe(self, replica: str, **fields: object) -> None:
        self.path.observe(replica, Reading(at=self.now, **fields), self.now)  # type: ignore[arg-type]  # as above
        self.advance()

    def apply(self, config: PathConfig) -> None:
        self.path.apply(config, self.now)
        self.advance()

    def nobody_waits_who_could_go(self) -> None:
        """Liveness: a driver that sleeps until the next wakeup leaves nobody standing who has a place."""
        for upstream in self.path.upstreams.values():
            for ticket in upstream.heads(self.now):
                output_tokens = upstream.reserved_output(ticket.request)
                barred = upstream.choose(ticket.request, output_tokens, self.now)
                assert isinstance(barred, Reason)
                if barred is Reason.PREFILL:
                    break
            assert upstream.queue.requests == 0 or self.path.next_wakeup() is not None

    def check(self) -> None:
        """Safety: what must hold after every event."""
        view = self.path.view(self.now)
        assert view["open_requests"] == len(self.waiting) + len(self.live)
        assert view["waiting"] == len(self.waiting)
        assert view["permit_leaks"] == 0
        held = [p for p in [*(permit for _, permit in self.live), *self.aborted] if p.state is not PermitState.SETTLED]
        assert view["permits"] == len(held)
        for upstream in self.path.upstreams.values():
            for replica in upstream.replicas:
                own = [p for p in held if p.replica == replica.name and p.upstream == upstream.name]
                assert replica.in_flight == sum(p.sequences for p in own)
                assert replica.slots.held == sum(p.slots for p in own)
                assert replica.slots.reserved == sum(p.slots for p in own if p.state is PermitState.RESERVED)
                fresh = [p for p in own if p.state is PermitState.RESERVED and p.pending_tokens]
                assert replica.pending_tokens == sum(p.prompt_tokens - p.cached_tokens for p in fresh)
                for name, sequences in replica.shares.sequences.items():
                    of_class = [permit for permit in own if permit.service_class == name]
                    assert sequences == sum(permit.sequences for permit in of_class)
                    assert replica.shares.slots[name] == sum(permit.slots for permit in of_class)
                # What running answers grew by may be more than there is; what was admitted may not.
                needed = replica.slots.needed
                admitted = sum(needed(p.prompt_tokens, p.expected_tokens, p.sequences) for p in own)
                assert replica.slots.total is None or admitted <= replica.slots.total
                assert all(p.reserved_tokens == 0 or p.reserved_tokens >= p.expected_tokens for p in own)
        self._check_groups(held)
        for account in self.path.quota.accounts.values():
            assert account.charged == account.settled + account.refunded + account.open
        for upstream in self.path.upstreams.values():
            assert upstream.queue.requests == sum(line.requests for line in upstream.queue.lines.values())
            expiry = upstream.queue.next_expiry()
            assert expiry is None or expiry > self.now

    def _check_groups(self, held: list[Permit]) -> None:
        """A pool is never promised twice, whatever was borrowed, reloaded or aborted. Groups bear the names of
        upstreams here. Answers that outgrow a learned reservation overdraw it: they cannot be stopped."""
        view = self.path.view(self.now)
        groups, pools = cast(View, view.get("groups", {})), cast(View, view.get("pools", {}))
        for name, group in groups.items():
            assert group["held_bytes"] == sum(permit.pool_bytes for permit in held if permit.upstream == name)
            assert 0 <= group["foreign_bytes"] <= group["held_bytes"] + group["foreign_bytes"] <= group["peak_bytes"]
            if not self.path.config.slots.learns:
                assert group["held_bytes"] <= group["cap_bytes"]
        for name, pool in pools.items():
            own = sum(group["held_bytes"] for group in groups.values() if group["pool"] == name)
            assert own <= pool["budget_bytes"] or self.path.config.slots.learns

    def finish(self) -> None:
        """End everything; afterwards nothing may be held anywhere."""
        for _ in range(10_000):
            if self.live:
                self.settle(0, Outcome.OK)
            elif self.waiting:
                self.pass_time(1.0)
            else:
                break
        self.pass_time(10.0)
        self.check()
        assert self.path.next_wakeup() is None
        view = self.path.view(self.now)
        assert (view["open_requests"], view["permits"], view["waiting"]) == (0, 0, 0)
        assert len(self.records) == self.offered
        for account in self.path.quota.accounts.values():
            assert (account.open, account.in_flight) == (0, 0)
        assert all(record.live_permits == 0 for record in self.records)
        assert not WAITING & {record.refused for record in self.records}
