"""What a ``Path`` was told and what it said, in order, and how two such stories differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice, zip_longest

from tidegate.policy.decisions import Admit, Answer, Decision, Refuse, Wait
from tidegate.policy.record import Record

SAME_MOMENT_S = 1e-9
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of ``Path``, or one verdict that it gave."""

    at: float
    call: str
    subject: int | str = 0
    """Request id; a replica's name where the call is about a replica."""
    ticket: int | None = None
    decision: str = ""
    reason: str | None = None
    replica: str | None = None
    degraded: str | None = None
    retry_after_s: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    steps: Sequence[Step]
    records: Sequence[Record]
    """Of the closed requests, in the order in which they were closed."""
    view: Mapping[str, object]
    """Path's own figures when all is over."""
    dump: Mapping[str, object]
    """What it has learned."""

    def count(self, **wanted: object) -> int:
        """Steps that have all of these values."""
        return sum(all(getattr(step, name) == value for name, value in wanted.items()) for step in self.steps)


def decision_step(at: float, call: str, request_id: int, decision: Decision, ticket: int | None = None) -> Step:
    """A step that says everything a decision says."""
    reason = replica = degraded = retry_after_s = None
    match decision:
        case Admit():
            replica, degraded = decision.permit.replica, decision.degraded
        case Wait():
            ticket, reason = decision.ticket, decision.reason
        case Refuse():
            reason, retry_after_s = decision.reason, decision.retry_after_s
        case Answer():
            reason, degraded = decision.reason, decision.degraded
    return Step(
        at=at,
        call=call,
        subject=request_id,
        ticket=ticket,
        decision=type(decision).__name__,
        reason=reason,
        replica=replica,
        degraded=degraded,
        retry_after_s=retry_after_s,
    )


def differences(one: Story, other: Story) -> list[str]:
    """The first few, in words; none when both tell the same."""
    found = [
        *islice(_unlike("step", one.steps, other.steps), MOST_SHOWN),
        *islice(_unlike("record", one.records, other.records), MOST_SHOWN),
    ]
    if not alike(one.view, other.view):
        found.append(f"view: {one.view} != {other.view}")
    if not alike(one.dump, other.dump):
        found.append(f"dump: {one.dump} != {other.dump}")
    return found


def _unlike(what: str, ones: Sequence[object], others: Sequence[object]) -> Iterator[str]:
    pairs = enumerate(zip_longest(ones, others))
    return (f"{what} {index}: {one} != {other}" for index, (one, other) in pairs if not alike(one, other))


def alike(one: object, other: object) -> bool:
    """Equal in every field, with times (and what is computed from them) to a nanosecond."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= SAME_MOMENT_S
    if is_dataclass(one):
        return all(alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other
