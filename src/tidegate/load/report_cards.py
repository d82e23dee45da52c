"""The figures that a load report begins with, a view for each phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from tidegate.load.definitions import DEFINITIONS
from tidegate.load.distribution import LEAST_FOR_P99, Distribution
from tidegate.load.figure_text import NOTHING, count_text, digits, rate_text, ratio_text, seconds_text, share_text
from tidegate.load.phase import Kind
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.report_html import Tab, tabs

FIRST_SEEN = (Kind.SOAK, Kind.LOAD, Kind.BURST, Kind.STEP, Kind.SINGLE)
"""Which kind of phase tells most about a service that people use. A kind that is not known here tells least."""


@dataclass(frozen=True, slots=True)
class Card:
    """A figure with its meaning (``key`` of the definitions)."""

    title: str
    key: str
    get: Callable[[PhaseFigures], float | None]
    show: Callable[[float | None], str]
    note: Callable[[PhaseFigures], str] = lambda _: ""
    alarm: str = ""
    """How it looks above 0."""


def _of(name: str, key: str) -> Callable[[PhaseFigures], float | None]:
    def get(phase: PhaseFigures) -> float | None:
        found: Distribution | None = getattr(phase.all, name)
        return None if found is None else float(getattr(found, key))

    return get


def _largest(name: str) -> Callable[[PhaseFigures], str]:
    def note(phase: PhaseFigures) -> str:
        found: Distribution | None = getattr(phase.all, name)
        return f"largest of {found.count}" if found is not None and found.count < LEAST_FOR_P99 else ""

    return note


def jitter_of(phase: PhaseFigures) -> float | None:
    return None if phase.all.e2e is None else phase.all.e2e.jitter


def _counted(*names: str) -> Callable[[PhaseFigures], str]:
    return lambda phase: f"{sum(phase.all.outcomes.get(name, 0) for name in names)} of {count_text(phase.all.due)}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else digits(value)


def _recovery(phase: PhaseFigures) -> str:
    return (
        "" if phase.recovered_in_s is None else f"back to normal {seconds_text(phase.recovered_in_s)} after the spike"
    )


CARDS = (
    Card("E2E P50", "e2e", _of("e2e", "p50"), seconds_text),
    Card("E2E P95", "e2e", _of("e2e", "p95"), seconds_text),
    Card("E2E P99", "e2e", _of("e2e", "p99"), seconds_text, _largest("e2e")),
    Card("Jitter P99/P50", "jitter", jitter_of, _number),
    Card("TTFT P50", "ttft", _of("ttft", "p50"), seconds_text),
    Card("TTFT P99", "ttft", _of("ttft", "p99"), seconds_text, _largest("ttft")),
    Card("TPOT P50", "tpot", _of("tpot", "p50"), seconds_text),
    Card("Worst gap P99", "worst_gap", _of("worst_gap", "p99"), seconds_text, _largest("worst_gap")),
    Card("Errors", "error_rate", lambda phase: phase.all.error_rate, share_text, alarm="bad"),
    Card("Shed", "shed_rate", lambda phase: phase.all.shed_rate, share_text, _counted("shed"), alarm="warn"),
    Card("Degraded", "degraded_rate", lambda phase: phase.all.degraded_rate, share_text, _counted("degraded"), "warn"),
    Card("Late", "late", lambda phase: float(phase.all.late), count_text, alarm="warn"),
    Card("Availability", "availability", lambda phase: phase.all.availability, share_text),
    Card("Goodput", "goodput_per_s", lambda phase: phase.all.goodput_per_s, rate_text,
         lambda phase: f"{share_text(phase.all.goodput_share)} of what was to be answered"),
    Card("Answers", "answered_per_s", lambda phase: phase.answered_per_s, rate_text, _recovery),
    Card("Tokens", "output_tokens_per_s", lambda phase: phase.output_tokens_per_s, rate_text),
)  # fmt: skip


def cards(phases: Sequence[PhaseFigures]) -> str:
    """Of the first target; what another one came to stands below, with the ratio."""
    names = [*dict.fromkeys(each.phase for each in phases)]
    views = []
    for name in names:
        own = [each for each in phases if each.phase == name]
        look = "cards" if len(own) == 1 else "cards several"
        views.append(Tab(name, f'<div class="{look}">{"".join(_card(each, own) for each in CARDS)}</div>'))
    return tabs("phase", views, names.index(main_phase(phases).phase)) if views else ""


def main_phase(phases: Sequence[PhaseFigures]) -> PhaseFigures:
    """The one whose figures are seen first: of the most telling kind the longest, then the one under most load."""
    order = [*FIRST_SEEN, *(each.kind for each in phases)]
    return min(phases, key=lambda each: (order.index(each.kind), -each.duration_s, -each.due_rate_per_s))


def _card(card: Card, phases: Sequence[PhaseFigures]) -> str:
    value = card.get(phases[0])
    notes = [card.note(phases[0]), *(_other(card, value, each) for each in phases[1:])]
    small = "".join(f"<small>{escape(note)}</small>" for note in notes if note)
    look = f" {card.alarm}" if card.alarm and value else ""
    tip = escape(DEFINITIONS[card.key], quote=True)
    return f'<dl class="card{look}" title="{tip}"><dt>{card.title}</dt><dd>{escape(card.show(value))}{small}</dd></dl>'


def _other(card: Card, value: float | None, phase: PhaseFigures) -> str:
    other = card.get(phase)
    ratio = f" ({ratio_text(other / value)})" if value and other is not None else ""
    return f"{phase.target}: {card.show(other)}{ratio}"
