"""What the driver calls: ``policy.path.Path``, or what a test puts before one.

Compiled classes cannot be subclassed by interpreted ones, so that whoever wants to watch a ``Path`` stands in
front of it instead.
"""

from __future__ import annotations

from typing import Protocol

from tidegate.policy.change import Diff, Drain, LiftMark, SetMark
from tidegate.policy.decisions import Admit, Answer, Decision, Refuse, Verdict
from tidegate.policy.outcomes import Outcome
from tidegate.policy.oversight import Oversight
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.quota import Quota
from tidegate.policy.reading import Reading
from tidegate.policy.record import Record
from tidegate.policy.request import Request
from tidegate.policy.token_source import TokenSource
from tidegate.policy.upstream import Upstream


class Door(Protocol):
    """As ``Path``, method by method."""

    config: PathConfig
    upstreams: dict[str, Upstream]
    quota: Quota
    oversight: Oversight

    def offer(self, request: Request, now: float) -> Decision: ...
    def advance(self, now: float) -> list[Verdict]: ...
    def amend(self, ticket_id: int, prompt_tokens: int, source: TokenSource, now: float) -> Answer | Refuse | None: ...
    def cancel(self, ticket_id: int, now: float) -> None: ...
    def progress(self, permit: Permit, event: Progress, now: float, tokens: int = 0) -> None: ...
    def again(
        self, request_id: int, cause: Outcome, now: float, *, written_tokens: int = 0
    ) -> Admit | Answer | Refuse: ...
    def hedge(self, request_id: int, now: float) -> Admit | None: ...
    def instead(self, request_id: int, cause: Outcome, now: float) -> Admit | Answer | Refuse: ...
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
    ) -> None: ...
    def close(self, request_id: int, now: float) -> Record: ...
    def remember(self, cache_key: bytes, body: bytes, now: float) -> None: ...
    def observe(self, replica_name: str, reading: Reading, now: float) -> None: ...
    def apply(self, change: PathConfig | Drain | SetMark | LiftMark, now: float) -> Diff: ...
    def next_wakeup(self) -> float | None: ...
    def view(self, now: float) -> dict[str, object]: ...
    def dump(self, now: float) -> dict[str, object]: ...
