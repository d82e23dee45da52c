"""DESIGN's invariants under random events: what must never happen, and what must always become possible."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.policy.machine import Events, replica_config
from tidegate.policy.balance.balancer import MOST_SCANNED
from tidegate.policy.breaker import State
from tidegate.policy.change import Drain, LiftMark, SetMark
from tidegate.policy.classes import ClassConfig, ClassesConfig
from tidegate.policy.decisions import Admit
from tidegate.policy.marks import OUTLIER, Mark, MarkKind
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.reading import ReplicaConfig
from tidegate.policy.slots import SlotsConfig

REPLICAS = (replica_config("a1"), replica_config("a2", sequences=4), replica_config("b1", "b", kv_tokens=4096))
CONFIG = PathConfig(replicas=REPLICAS, queue=QueueConfig(max_requests=20, max_tokens=40_000, max_overtakes=3))
INDEX = st.integers(0, 1000)


class PathMachine(RuleBasedStateMachine):
    more: tuple[ReplicaConfig, ...] = ()
    """Replicas besides those that rules name; never removed."""
    base = CONFIG
    """Its replicas are called a1, a2 and b1."""
    events_of = Events

    def __init__(self) -> None:
        super().__init__()
        self.config = replace(self.base, replicas=self.base.replicas + self.more)
        self.events = self.events_of(Path(self.config, 0.0))

    @rule(seconds=st.floats(0.0, 20.0))
    def pass_time(self, seconds: float) -> None:
        self.events.pass_time(seconds)

    @rule(
        upstream=st.sampled_from(["a", "b", "unknown"]),
        prompt_tokens=st.integers(1, 5000),
        max_tokens=st.none() | st.integers(0, 2000),
        sequences=st.integers(1, 3),
        patience_s=st.none() | st.floats(0.0, 30.0),
        deadline_s=st.none() | st.floats(0.0, 60.0),
        streaming=st.booleans(),
        class_hint=st.sampled_from([None, "interactive", "batch", "nonsense"]),
        key=st.sampled_from([None, "k1", "k2"]),
        session=st.sampled_from([None, "s1", "s2"]),
        tenant=st.sampled_from(["t1", "t2"]),
        cache_key=st.sampled_from([None, b"c1"]),
        prefixes=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=2).map(tuple),
    )
    def offer(self, patience_s: float | None, deadline_s: float | None, **fields: object) -> None:
        if patience_s is not None:
            fields["first_byte_by"] = self.events.now + patience_s
        if deadline_s is not None:
            fields["deadline_at"] = self.events.now + deadline_s
        self.events.offer(**fields)

    @precondition(lambda self: self.events.waiting)
    @rule(index=INDEX)
    def leave_the_queue(self, index: int) -> None:
        self.events.cancel(index)

    @precondition(lambda self: self.events.waiting)
    @rule(index=INDEX, prompt_tokens=st.integers(1, 5000))
    def count_a_waiting_prompt(self, index: int, prompt_tokens: int) -> None:
        self.events.amend(index, prompt_tokens)

    @rule(body=st.binary(max_size=20))
    def keep_an_answer(self, body: bytes) -> None:
        self.events.path.remember(b"c1", body, self.events.now)

    @rule(kind=st.sampled_from(MarkKind), seconds=st.floats(0.1, 30.0))
    def mark(self, kind: MarkKind, seconds: float) -> None:
        key = {MarkKind.SESSION: "s1", MarkKind.TENANT: "t1", MarkKind.MODEL: "b"}.get(kind, "nobody")
        self.events.path.marks.add(Mark(kind, key, "blocked", self.events.now + seconds, "asked for"), self.events.now)

    @rule(
        name=st.sampled_from(["a1", "a2", "b1"]), seconds=st.floats(0.1, 30.0), reason=st.sampled_from(["x", OUTLIER])
    )
    def set_a_replica_aside(self, name: str, seconds: float, reason: str) -> None:
        path = self.events.path
        if any(each.name == name for upstream in path.upstreams.values() for each in upstream.replicas):
            path.apply(SetMark(MarkKind.REPLICA, name, seconds, reason, "asked for"), self.events.now)
            self.events.advance()

    @rule(name=st.sampled_from(["a1", "a2", "b1"]))
    def take_a_replica_back(self, name: str) -> None:
        self.events.path.apply(LiftMark(MarkKind.REPLICA, name), self.events.now)
        self.events.advance()

    @rule()
    def patrol(self) -> None:
        self.events.path.oversight.patrol(self.events.now)
        self.events.advance()

    @rule()
    def what_is_kept_over_a_restart_is_what_was(self) -> None:
        path, now = self.events.path, self.events.now
        state = path.dump(now)
        path.restore(state, now)
        assert path.dump(now)["replicas"] == state["replicas"]
        other = Path(self.config, 1e6)
        other.restore(state, 1e6)
        assert len(other.marks) == len(path.marks.live(now))

    @rule()
    def nobody_waits_who_could_go(self) -> None:
        self.events.nobody_waits_who_could_go()

    @precondition(lambda self: self.events.live)
    @rule(index=INDEX)
    def first_token(self, index: int) -> None:
        self.events.first_token(index)

    @precondition(lambda self: self.events.live)
    @rule(index=INDEX, tokens=st.integers(1, 3000))
    def write(self, index: int, tokens: int) -> None:
        self.events.write(index, tokens)

    @precondition(lambda self: self.events.live)
    @rule(index=INDEX, outcome=st.sampled_from(Outcome), retry=st.booleans(), output_tokens=st.integers(0, 600))
    def settle(self, index: int, outcome: Outcome, retry: bool, output_tokens: int) -> None:
        self.events.settle(index, outcome, retry=retry, output_tokens=output_tokens)

    @precondition(lambda self: self.events.live)
    @rule(index=INDEX, outcome=st.sampled_from([Outcome.CLIENT_LEFT, Outcome.GAP_TIMEOUT, Outcome.TOTAL_TIMEOUT]))
    def abort(self, index: int, outcome: Outcome) -> None:
        self.events.settle(index, outcome, still_running=True)

    @precondition(lambda self: self.events.aborted)
    @rule(index=INDEX)
    def confirm_abort(self, index: int) -> None:
        self.events.confirm(index)

    @rule(
        replica=st.sampled_from(["a1", "a2", "b1", "unknown"]),
        ready=st.booleans(),
        running=st.none() | st.integers(0, 12),
        kv_used_tokens=st.none() | st.integers(0, 9000),
        preemptions=st.none() | st.integers(0, 9),
    )
    def observe(self, replica: str, **fields: object) -> None:
        self.events.observe(replica, **fields)

    @rule(keep=st.sets(st.sampled_from(["a1", "a2", "b1"])), classes=st.booleans(), room=st.integers(1, 30))
    def reload(self, keep: set[str], classes: bool, room: int) -> None:
        base = self.base
        names = {name: each for name, each in base.classes.classes.items() if classes or name != "batch"}
        kept = tuple(replica for replica in base.replicas if replica.name in keep)
        self.events.apply(
            replace(
                base,
                replicas=kept + self.more,
                classes=replace(base.classes, classes=names),
                queue=replace(base.queue, max_requests=room),
            )
        )

    @rule(replica=st.sampled_from(["a1", "a2", "b1"]), on=st.booleans())
    def drain(self, replica: str, on: bool) -> None:
        self.events.path.apply(Drain(replica, on), self.events.now)
        self.events.advance()

    def rested(self) -> Events:
        """Everything has ended, every replica is back, and a while has passed."""
        events = self.events
        events.apply(self.config)
        events.finish()
        for name in ("a1", "a2", "b1"):
            events.path.apply(Drain(name, on=False), events.now)
            events.observe(name)
            events.observe(name)
        events.pass_time(70.0)
        return events

    @rule()
    def an_idle_system_always_admits_again(self) -> None:
        """Liveness: whatever happened, once all is over and all replicas are back, anybody gets in."""
        events = self.rested()
        for mark in events.path.marks.live(events.now):
            assert mark.kind is MarkKind.SESSION
            assert mark.until - events.now < 61.0
        for upstream in ("a", "b"):
            assert isinstance(events.offer(upstream=upstream, prompt_tokens=100, max_tokens=10), Admit)

    @invariant()
    def the_books_agree(self) -> None:
        self.events.check()

    @invariant()
    def one_replica_of_an_upstream_stays_in(self) -> None:
        for upstream in self.events.path.upstreams.values():
            is_one_in = any(each.breaker.state is not State.OPEN or not each.serves for each in upstream.replicas)
            # A reload may leave only one whose breaker was open already: that one serves all the same.
            assert not upstream.replicas or is_one_in or upstream.is_in_panic(self.events.now)

    def teardown(self) -> None:
        self.events.apply(self.config)
        self.events.finish()


class ManyReplicasMachine(PathMachine):
    """More replicas than are looked at one by one: two are drawn."""

    more = tuple(replica_config(f"x{number}", sequences=1, kv_tokens=2048) for number in range(MOST_SCANNED))


class LearnedMachine(PathMachine):
    """Reservations by what answers turn out to need, which grow while they run; and a class with an objective."""

    base = replace(
        CONFIG,
        slots=SlotsConfig(mode="learned"),
        classes=ClassesConfig(classes={**ClassesConfig().classes, "interactive": ClassConfig(ttft_slo_s=3.0)}),
    )


PathMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
ManyReplicasMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=60, deadline=None)
LearnedMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestPathMachine = PathMachine.TestCase
TestLearnedMachine = LearnedMachine.TestCase
TestManyReplicasMachine = ManyReplicasMachine.TestCase
