"""Bars on the load that a service is meant for (SPEC theme 9, appendix D "acceptance gates").

Judged in the phases ``soak`` and ``load`` together; where the plan has none, in its steps; where it has none of those
either, in ``single``. A burst, and steps above a planned load, are overload, which has a bar of its own (SPEC C9, C23).
Of several phases the worst counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.distribution import LEAST_FOR_P99, Distribution
from tidegate.load.figure_text import ratio_text, seconds_text, share_text
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PartFigures, PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.time_slices import LEAST_FOR_P95
from tidegate.load.verdict import Verdict

P50_S = 2.0
"""Chat (SPEC S1-46)."""
P95_TO_P50 = 3.0
P99_S = 10.0
TIMEOUT_RATE = 0.005
ERROR_RATE = 0.001
AVAILABILITY = 0.999
PLANNED_NOTE = "planned_rate_per_s"
"""Of ``Plan.notes``: requests per second that the service is planned for, as a number."""
PEAK_NOTE = "real_peak_per_s"
"""Of ``Plan.notes``: the highest rate that was seen in production."""
NO_PHASE = "run a plan with a phase of load or soak, such as three-phase"

BarRule = Callable[[Sequence[PhaseFigures], Plan], Verdict | None]


@dataclass(frozen=True, slots=True)
class Response:
    """Which time is a service's response time."""

    name: str
    title: str
    of: Callable[[PartFigures], Distribution | None]


E2E = Response("e2e", "whole answer, from when it was due", lambda part: part.scheduled_e2e)
TTFT = Response("ttft", "first token, from sending", lambda part: part.ttft)
RESPONSES = (E2E, TTFT)


def rated(figures: Sequence[PhaseFigures], plan: Plan) -> list[PhaseFigures]:
    """The phases that stand for the load which the service is meant for."""
    planned = noted(plan, PLANNED_NOTE)
    steps = [each for each in figures if each.kind == Kind.STEP]
    below = [each for each in steps if planned is None or each.due_rate_per_s <= planned * 1.05]
    kinds = (
        [each for each in figures if each.kind in {Kind.SOAK, Kind.LOAD} and not is_above_peak(each, plan)],
        below,
        [each for each in figures if each.kind == Kind.SINGLE],
    )
    return next((found for found in kinds if found), [])


def noted(plan: Plan, key: str) -> float | None:
    """A number in the plan's notes; None where there is none."""
    try:
        return float(plan.notes[key])
    except (KeyError, ValueError):
        return None


def is_above_peak(figures: PhaseFigures, plan: Plan) -> bool:
    """Whether the phase plays 1.5 × the real peak: judged by its own bar."""
    peak = noted(plan, PEAK_NOTE)
    return peak is not None and figures.due_rate_per_s >= 1.4 * peak


def asked(part: PartFigures) -> int:
    """What the rates are of: sent, without what had to be refused and was."""
    return part.due - sum(part.outcomes.get(each.value, 0) for each in (ClientOutcome.EXPECTED, ClientOutcome.UNSENT))


def latency_bars(response: Response) -> tuple[BarRule, ...]:
    def p50(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
        return _latency(figures, plan, response, _Latency("P50", "S1-46", f"P50 <= {P50_S:g} s", 1, _at_most_2_s))

    def p95(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
        bar = f"P95 <= {P95_TO_P50:g} × P50"
        return _latency(figures, plan, response, _Latency("P95 / P50", "S1-47", bar, LEAST_FOR_P95, _p95_to_p50))

    def p99(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
        bar = f"P99 <= {P99_S:g} s"
        return _latency(figures, plan, response, _Latency("P99", "S1-48", bar, LEAST_FOR_P99, _at_most_10_s))

    return (p50, p95, p99)


@dataclass(frozen=True, slots=True)
class _Latency:
    name: str
    row: str
    bar: str
    least: int
    """Answers, for the percentile to be one."""
    reading: Callable[[Distribution], tuple[float, str]]
    """How much of the bar is used up (above 1: missed), and what was measured in words."""


def _at_most_2_s(found: Distribution) -> tuple[float, str]:
    return found.p50 / P50_S, seconds_text(found.p50)


def _p95_to_p50(found: Distribution) -> tuple[float, str]:
    ratio = found.p95 / found.p50 if found.p50 > 0 else 0.0
    return ratio / P95_TO_P50, f"{ratio_text(ratio)} ({seconds_text(found.p95)} / {seconds_text(found.p50)})"


def _at_most_10_s(found: Distribution) -> tuple[float, str]:
    return found.p99 / P99_S, seconds_text(found.p99)


def _latency(figures: Sequence[PhaseFigures], plan: Plan, response: Response, bar: _Latency) -> Verdict:
    """A service that answers too few to be judged is not judged; one that answers nobody has not passed."""
    name = f"{bar.name} ({response.title})"
    phases = rated(figures, plan)
    if not phases:
        return Verdict(name=name, row=bar.row, bar=bar.bar, measured="–", passed=None, why=NO_PHASE)
    read = [(*bar.reading(found), each) for each in phases if (found := response.of(each.all)) and found.count]
    if not read:
        why = "nothing was answered" if response is E2E else "no stream was answered: send streams, or judge acceptance"
        return Verdict(name=name, row=bar.row, bar=bar.bar, measured="–", passed=None, why=why)
    short = [each.phase for each in phases if (found := response.of(each.all)) is None or found.count < bar.least]
    used, text, worst = max(read, key=lambda each: each[0])
    measured = f"{text} in {worst.phase}"
    if short:
        why = f"fewer than {bar.least} answers in {', '.join(short)}: run it longer"
        return Verdict(name=name, row=bar.row, bar=bar.bar, measured=measured, passed=None, why=why)
    passed = used <= 1.0
    return Verdict(name=name, row=bar.row, bar=bar.bar, measured=measured, passed=passed, why="" if passed else SLOW)


SLOW = "see latency over time, and queue beside model time: what waits, or what computes?"


@dataclass(frozen=True, slots=True)
class RateBar:
    """A share of what was sent that must stay below ``bound``."""

    name: str
    row: str
    bound: float
    of: Callable[[PartFigures], float]
    why: str

    @property
    def bar(self) -> str:
        return f"< {share_text(self.bound)}"

    def verdict(self, phases: Sequence[PhaseFigures], if_none: str) -> Verdict:
        """By the worst of ``phases``. Without a failure, it takes 1 / bound requests to say that there are so few."""
        if not phases:
            return Verdict(name=self.name, row=self.row, bar=self.bar, measured="–", passed=None, why=if_none)
        worst = max(phases, key=lambda each: self.of(each.all))
        rate, sent = self.of(worst.all), sum(asked(each.all) for each in phases)
        measured = f"{share_text(rate)} of {asked(worst.all)} in {worst.phase}"
        least = ceil(1 / self.bound - 1e-9)
        if rate >= self.bound:
            return Verdict(name=self.name, row=self.row, bar=self.bar, measured=measured, passed=False, why=self.why)
        if sent < least:
            why = f"{sent} requests cannot show it: send at least {least}"
            return Verdict(name=self.name, row=self.row, bar=self.bar, measured=measured, passed=None, why=why)
        return Verdict(name=self.name, row=self.row, bar=self.bar, measured=measured, passed=True)


TIMEOUTS = RateBar(
    "timeouts", "S1-50", TIMEOUT_RATE, lambda part: part.timeout_rate, "clients left: see what they waited for"
)
ERRORS = RateBar(
    "errors", "S1-51", ERROR_RATE, lambda part: part.error_rate, "see codes and outcomes; shed is not among them"
)


def _timeouts(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
    return TIMEOUTS.verdict(rated(figures, plan), NO_PHASE)


def _errors(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
    return ERRORS.verdict(rated(figures, plan), NO_PHASE)


def availability_verdict(phases: Sequence[PhaseFigures], if_none: str) -> Verdict:
    """At least three nines, as S1-41 has it: shed, errors and empty answers all count against it."""
    why = "shed, errors and empty answers all count: see outcomes"
    missed = RateBar("availability", "S1-41", 1 - AVAILABILITY, lambda part: 1 - part.availability, why)
    found = replace(missed.verdict(phases, if_none), bar=f">= {AVAILABILITY * 100:g} %")
    if not phases:
        return found
    worst = min(phases, key=lambda each: each.all.availability)
    # Three nines are told apart from four, which three digits would not.
    percent = f"{worst.all.availability * 100:.3f}".rstrip("0").rstrip(".")
    found = replace(found, measured=f"{percent} % of {asked(worst.all)} in {worst.phase}")
    is_enough = worst.all.availability >= AVAILABILITY and found.passed is False
    return replace(found, passed=True, why="") if is_enough else found


def _availability(figures: Sequence[PhaseFigures], plan: Plan) -> Verdict:
    return availability_verdict(rated(figures, plan), NO_PHASE)


def _refusals(figures: Sequence[PhaseFigures], _plan: Plan) -> Verdict:
    """What must be refused (over-long, abnormal) was, in all phases (SPEC S1-60, S2-28)."""
    expected = sum(each.all.outcomes.get(ClientOutcome.EXPECTED, 0) for each in figures)
    unexpected = sum(each.all.outcomes.get(ClientOutcome.UNEXPECTED, 0) for each in figures)
    name, bar = "over-long and abnormal requests", "all get the refusal that they must get"
    if not expected + unexpected:
        why = "nothing was sent that must be refused: run three-phase with its soak, or abnormal"
        return Verdict(name=name, row="S1-60", bar=bar, measured="–", passed=None, why=why, is_required=False)
    measured = f"{expected} of {expected + unexpected}"
    why = "see the records with outcome unexpected" if unexpected else ""
    return Verdict(name=name, row="S1-60", bar=bar, measured=measured, passed=not unexpected, why=why)


RATED_BARS: tuple[BarRule, ...] = (_timeouts, _errors, _availability, _refusals)
