"""Drivers with one mistake each. The comparison has to tell them from the right one."""

from __future__ import annotations

from tidegate.gateway.driver import Applicant, Driver
from tidegate.policy.change import Diff, Drain, LiftMark, SetMark
from tidegate.policy.decisions import Refuse
from tidegate.policy.outcomes import Outcome
from tidegate.policy.path_config import PathConfig
from tidegate.policy.permit import Permit, Progress
from tidegate.policy.reading import Reading
from tidegate.policy.record import Record


class KeepsWhatEnds(Driver):
    """What a request frees is handed on with the next event only."""

    def close(self, request_id: int, now: float) -> Record:
        return self._path.close(request_id, now)


class KeepsWhatFails(Driver):
    """So is what the first attempt of a retried request frees."""

    def again(
        self, request_id: int, cause: Outcome, now: float, applicant: Applicant, written_tokens: int = 0
    ) -> Refuse | None:
        decision = self._path.again(request_id, cause, now, written_tokens=written_tokens)
        if isinstance(decision, Refuse):
            return decision
        applicant.on_decision(decision)
        return None


class IgnoresReadings(Driver):
    """A reading is taken note of, and those who wait are not told."""

    def observe(self, replica: str, reading: Reading) -> None:
        self._path.observe(replica, reading, self.now())


class IgnoresReloads(Driver):
    """A reload makes room, and nobody is told."""

    def apply(self, change: PathConfig | Drain | SetMark | LiftMark) -> Diff:
        return self._path.apply(change, self.now())


class IgnoresFirstTokens(Driver):
    """The prefill that ended makes room, and nobody is told."""

    def first_token(self, permit: Permit, now: float) -> None:
        self._path.progress(permit, Progress.FIRST_TOKEN, now)


class WakesOnce(Driver):
    """The timer is not set again after it has fired."""

    def _wake(self) -> None:
        self._timer = None
        self._advance()


class WakesLate(Driver):
    """The timer goes off a moment after its time."""

    def _set_timer(self) -> None:
        if self._timer is None:
            wakes_at = self._path.next_wakeup()
            if wakes_at is not None:
                self._timer = self._loop.call_at(wakes_at + 1e-6, self._wake)


class ForgetsGrace(Driver):
    """An abort's grace runs and no timer is set for its end."""

    _is_settling = False

    def settle(
        self,
        permit: Permit,
        outcome: Outcome,
        now: float,
        output_tokens: int | None,
        prompt_tokens: int | None,
        worst_gap_s: float | None,
        still_running: bool,
    ) -> None:
        self._is_settling = True
        super().settle(permit, outcome, now, output_tokens, prompt_tokens, worst_gap_s, still_running)
        self._is_settling = False

    def _set_timer(self) -> None:
        if not self._is_settling:
            super()._set_timer()


class TellsATurnLater(Driver):
    """Verdicts are delivered in the loop's next turn."""

    def _advance(self) -> None:
        for verdict in self._path.advance(self.now()):
            self._loop.call_soon(self._waiting.pop(verdict.ticket).on_decision, verdict.decision)
        self._set_timer()


class AdvancesATurnLater(Driver):
    """Verdicts are asked for in the loop's next turn."""

    def _advance(self) -> None:
        self._loop.call_soon(super()._advance)
