"""A fault on one of two replicas: how soon it is avoided, whom it costs an answer, how soon it is used again."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import pytest

from tests.policy.machine import replica_config
from tidegate.policy.decisions import Admit, Wait
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.reading import Reading
from tidegate.policy.request import Request

BEGINS_S, HEALS_S, ENDS_S = 10.0, 30.0, 45.0
EVERY_S = 0.05
READ_EVERY_S = 0.5
HANG_TIMEOUT_S = 5.0
ANSWER_S = 0.4


@dataclass
class Run:
    """Twenty requests a second on two replicas, of which one misbehaves for a while."""

    fault: str
    now: float = 0.0
    number: int = 0
    failed: int = 0
    placed: list[float] = field(default_factory=list)
    """When a request went to the faulty replica, probes left out."""
    served: list[float] = field(default_factory=list)
    """When it showed a first byte in time."""
    events: list[tuple[float, int, str, Permit | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = Path(PathConfig(replicas=(replica_config("a1"), replica_config("a2"))), 0.0)

    def at(self, when: float, what: str, permit: Permit | None = None) -> None:
        self.number += 1
        heappush(self.events, (when, self.number, what, permit))

    def run(self) -> Run:
        self.at(0.0, "read")
        self.at(0.1, "offer")
        while self.events[0][0] < ENDS_S:
            self.now, _, what, permit = heappop(self.events)
            if permit is None:
                self.read() if what == "read" else self.offer()
            elif what == "first":
                self.first(permit)
            else:
                self.end(permit, Outcome(what))
            self.advance()
        return self

    def advance(self) -> None:
        for verdict in self.path.advance(self.now):
            if isinstance(verdict.decision, Admit):
                self.start(verdict.decision.permit)
            else:
                self.failed += 1
                self.path.close(verdict.request_id, self.now)

    def read(self) -> None:
        for name in ("a1", "a2"):
            self.path.observe(name, Reading(self.now), self.now)
        self.path.oversight.patrol(self.now)
        self.at(self.now + READ_EVERY_S, "read")

    def offer(self) -> None:
        self.number += 1
        draw = self.number * 0x9E3779B97F4A7C15 % 2**64
        decision = self.path.offer(Request(self.number, "a", self.now, draw, 200, max_tokens=50), self.now)
        if isinstance(decision, Admit):
            self.start(decision.permit)
        elif not isinstance(decision, Wait):
            self.failed += 1
            self.path.close(self.number, self.now)
        self.at(self.now + EVERY_S, "offer")

    def start(self, permit: Permit) -> None:
        is_ill = permit.replica == "a2" and BEGINS_S <= self.now < HEALS_S
        if is_ill and not permit.probe:
            self.placed.append(self.now)
        if not is_ill:
            self.at(self.now + ANSWER_S / 4, "first", permit)
        elif self.fault == "slow":
            self.at(self.now + 10 * ANSWER_S / 4, "first", permit)
        elif self.fault == "hang":
            self.at(self.now + HANG_TIMEOUT_S, Outcome.FIRST_BYTE_TIMEOUT, permit)
        else:
            self.at(self.now + 0.01, self.fault, permit)

    def first(self, permit: Permit) -> None:
        if permit.replica == "a2" and self.now - permit.admitted_at < ANSWER_S:
            self.served.append(self.now)
        self.path.progress(permit, Progress.FIRST_TOKEN, self.now)
        self.at(self.now + 3 * ANSWER_S / 4, Outcome.OK, permit)

    def end(self, permit: Permit, outcome: Outcome) -> None:
        self.path.settle(permit, outcome, self.now, output_tokens=50)
        if EFFECTS[outcome].retry and self.path.find(permit.request_id).attempts == 1:
            again = self.path.again(permit.request_id, outcome, self.now)
            if isinstance(again, Admit):
                self.start(again.permit)
                return
        self.failed += outcome is not Outcome.OK
        self.path.close(permit.request_id, self.now)

    @property
    def avoided_s(self) -> float:
        """From the beginning of the fault to the last request that was sent into it, but for probes."""
        return max(self.placed, default=BEGINS_S) - BEGINS_S

    @property
    def back_s(self) -> float:
        """From the end of the fault to the first good first byte."""
        return min(each for each in self.served if each > HEALS_S) - HEALS_S


@pytest.mark.parametrize(
    ("fault", "avoided_s", "failed"),
    [
        (Outcome.CONNECT_FAILED, 0.2, 0),
        (Outcome.ENGINE_ERROR, 1.0, 0),
        (Outcome.CUT, 1.0, 20),
        # A replica that hangs draws little by itself, for its prompts stay unread; five of them take two timeouts.
        ("hang", 2 * HANG_TIMEOUT_S + 0.5, 10),
    ],
)
def test_a_replica_that_fails_is_left_within_seconds_and_used_again_within_five(
    fault: str, avoided_s: float, failed: int
) -> None:
    run = Run(fault).run()
    assert run.avoided_s <= avoided_s
    assert run.failed <= failed
    assert run.back_s <= 5.0


def test_a_replica_that_is_ten_times_slower_gets_little_until_it_is_well() -> None:
    run = Run("slow").run()
    assert run.failed == 0
    assert run.avoided_s <= 2.0
    assert len(run.placed) <= 10
    assert run.back_s <= 5.0
