"""A ``Path`` that writes down what it is told and what it says.

It also dresses each request as its client would have: the simulator's own requests are all streams
of one model without a deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from tests.equivalence.story import Step, Story, decision_step
from tidegate.policy.change import Diff, Drain
from tidegate.policy.decisions import Admit, Answer, Decision, Refuse, Verdict
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path import Path
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.reading import Reading
from tidegate.policy.record import Record
from tidegate.policy.request import NEVER, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What one client's requests have beside lengths and patience."""

    streaming: bool = True
    deadline_s: float | None = None
    """From arrival."""
    class_hint: str | None = None
    upstream: str | None = None
    tenant: str = "default"
    session: str | None = None
    sequences: int = 1
    cache_key: bytes | None = None
    is_bounded: bool = True
    """The client sends max_tokens."""
    tells_patience: bool = True
    """False: it leaves without a warning."""


PLAIN = Traits()


class RecordingPath:
    """Stands before a ``Path``: what it does not write down, it hands on."""

    def __init__(self, config: PathConfig, now: float, traits: Mapping[str, Traits]) -> None:
        self.steps: list[Step] = []
        self.records: list[Record] = []
        self.whole: set[int] = set()
        """Permits whose answer comes in one piece, without a first token that anyone sees."""
        self._traits = traits
        self._path = Path(config, now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._path, name)

    @property
    def as_path(self) -> Path:
        """Itself, for those who ask for a ``Path`` and take what answers like one."""
        return cast("Path", self)

    def story(self, now: float) -> Story:
        return Story(steps=self.steps, records=self.records, view=self._path.view(now), dump=self._path.dump(now))

    def _dressed(self, request: Request) -> Request:
        traits = self._traits.get(request.key or "", PLAIN)
        return replace(
            request,
            upstream=traits.upstream or request.upstream,
            streaming=traits.streaming,
            deadline_at=NEVER if traits.deadline_s is None else request.arrived_at + traits.deadline_s,
            first_byte_by=request.first_byte_by if traits.tells_patience else NEVER,
            class_hint=traits.class_hint,
            tenant=traits.tenant,
            session=traits.session,
            sequences=traits.sequences,
            cache_key=traits.cache_key,
            max_tokens=request.max_tokens if traits.is_bounded else None,
        )

    # ---- decisions --------------------------------------------------------------------------

    def offer(self, request: Request, now: float) -> Decision:
        decision = self._path.offer(self._dressed(request), now)
        self._decided(now, "offer", request.id, decision)
        return decision

    def advance(self, now: float) -> list[Verdict]:
        verdicts = self._path.advance(now)
        for verdict in verdicts:
            self._decided(now, "verdict", verdict.request_id, verdict.decision, verdict.ticket)
        return verdicts

    def again(self, request_id: int, cause: Outcome, now: float, *, written_tokens: int = 0) -> Admit | Answer | Refuse:
        decision = self._path.again(request_id, cause, now, written_tokens=written_tokens)
        self._decided(now, "again", request_id, decision)
        return decision

    def hedge(self, request_id: int, now: float) -> Admit | None:
        decision = self._path.hedge(request_id, now)
        if decision is not None:
            self._decided(now, "hedge", request_id, decision)
        return decision

    def instead(self, request_id: int, cause: Outcome, now: float) -> Admit | Answer | Refuse:
        decision = self._path.instead(request_id, cause, now)
        self._decided(now, "instead", request_id, decision)
        return decision

    def _decided(self, now: float, call: str, request_id: int, decision: Decision, ticket: int | None = None) -> None:
        self.steps.append(decision_step(now, call, request_id, decision, ticket))
        if isinstance(decision, Admit) and not self._path.find(request_id).request.streaming:
            self.whole.add(decision.permit.id)

    # ---- what is told -----------------------------------------------------------------------

    def cancel(self, ticket_id: int, now: float) -> None:
        self.steps.append(Step(at=now, call="cancel", ticket=ticket_id))
        self._path.cancel(ticket_id, now)

    def progress(self, permit: Permit, event: Progress, now: float, tokens: int = 0) -> None:
        self.steps.append(Step(at=now, call=event.value, subject=permit.request_id, replica=permit.replica))
        self._path.progress(permit, event, now, tokens)

    def settle(
        self,
        permit: Permit,
        outcome: Outcome,
        now: float,
        *,
        output_tokens: int | None = None,
        prompt_tokens: int | None = None,
        worst_gap_s: float | None = None,
        still_running: bool = False,
    ) -> None:
        detail = f"{outcome.value} {output_tokens=} {prompt_tokens=} {worst_gap_s=} {still_running=}"
        self.steps.append(Step(at=now, call="settle", subject=permit.request_id, replica=permit.replica, detail=detail))
        self._path.settle(
            permit,
            outcome,
            now,
            output_tokens=output_tokens,
            prompt_tokens=prompt_tokens,
            worst_gap_s=worst_gap_s,
            still_running=still_running,
        )

    def close(self, request_id: int, now: float) -> Record:
        self.steps.append(Step(at=now, call="close", subject=request_id))
        self.records.append(self._path.close(request_id, now))
        return self.records[-1]

    def observe(self, replica_name: str, reading: Reading, now: float) -> None:
        self.steps.append(Step(at=now, call="observe", subject=replica_name, detail=str(reading)))
        self._path.observe(replica_name, reading, now)

    def apply(self, change: PathConfig | Drain, now: float) -> Diff:
        diff = self._path.apply(change, now)
        self.steps.append(Step(at=now, call="apply", detail="; ".join(diff.lines)))
        return diff
