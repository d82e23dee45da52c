"""One run looked at in the ways in which services are judged: three dimensions, three layers, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.distribution import Distribution
from tidegate.load.figure_text import NOTHING, count_text, digits, rate_text, ratio_text, seconds_text, share_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.report_html import Cell, Row, table
from tidegate.load.side_by_side import Ratio

Get = Callable[[PhaseFigures], float | None]
Show = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A figure as a row, a column for each phase."""

    name: str
    get: Get
    show: Show


def _of(name: str, key: str) -> Get:
    def get(phase: PhaseFigures) -> float | None:
        found: Distribution | None = getattr(phase.all, name)
        return None if found is None else getattr(found, key)

    return get


def _outcome(outcome: ClientOutcome) -> Get:
    return lambda phase: float(phase.all.outcomes.get(outcome.value, 0))


def _number(value: float | None) -> str:
    return NOTHING if value is None else digits(value)


E2E_P50, E2E_P95, E2E_P99 = (Line(f"E2E {key.upper()}", _of("e2e", key), seconds_text) for key in ("p50", "p95", "p99"))
TTFT_P50, TTFT_P99 = (Line(f"TTFT {key.upper()}", _of("ttft", key), seconds_text) for key in ("p50", "p99"))
TPOT_P50, TPOT_P99 = (Line(f"TPOT {key.upper()}", _of("tpot", key), seconds_text) for key in ("p50", "p99"))
JITTER = Line("jitter P99/P50", _of("e2e", "jitter"), _number)
SPREAD = Line("standard deviation of P95 over time", lambda phase: phase.all.p95_std_s, seconds_text)
ERRORS = Line("error rate", lambda phase: phase.all.error_rate, share_text)
TIMEOUTS = Line("timeout rate", lambda phase: phase.all.timeout_rate, share_text)
SHED = Line("shed rate", lambda phase: phase.all.shed_rate, share_text)
DEGRADED = Line("degraded rate", lambda phase: phase.all.degraded_rate, share_text)
AVAILABILITY = Line("availability", lambda phase: phase.all.availability, share_text)
RECOVERY = Line("recovery after the spike", lambda phase: phase.recovered_in_s, seconds_text)
TOKENS = Line("output tokens", lambda phase: phase.output_tokens_per_s, rate_text)
ANSWERS = Line("answers", lambda phase: phase.answered_per_s, rate_text)
GOODPUT = Line("goodput", lambda phase: phase.all.goodput_per_s, rate_text)
ABNORMAL = Line("answers that were none (empty, garbled, no JSON)", _outcome(ClientOutcome.ABNORMAL), count_text)
BROKEN = Line("answers that were cut off", _outcome(ClientOutcome.BROKEN), count_text)
MODEL_TIME = Line("time beyond the queue, P50", _of("model_time", "p50"), seconds_text)
QUEUE = Line("time in the queue, P99", _of("queue", "p99"), seconds_text)

DIMENSIONS: dict[str, tuple[Line, ...]] = {
    "1 · Performance: is it as quick as it was, at every load?": (E2E_P50, E2E_P95, E2E_P99, TTFT_P99, JITTER, SPREAD),
    "2 · Output: is what comes an answer?": (ABNORMAL, BROKEN, DEGRADED),
    "3 · Service: does it answer at all?": (ERRORS, TIMEOUTS, SHED, AVAILABILITY, RECOVERY),
}
"""SPEC S2-23."""
LAYERS: dict[str, tuple[Line, ...]] = {
    "1 · Model: does the answer hold?": (ABNORMAL,),
    "2 · Engine: what does the machine give?": (TTFT_P50, TPOT_P50, TPOT_P99, MODEL_TIME, TOKENS),
    "3 · Service: does it stand?": (ERRORS, SHED, AVAILABILITY, QUEUE, RECOVERY),
}
"""SPEC S1-43. Of an idle engine the time to the first token is its prefill: see the single phase."""
ABOUT_OUTPUT = frozenset({[*DIMENSIONS][1], next(iter(LAYERS))})
"""The groups in which consistency stands."""
SHARES = ("_share", "_similarity")
"""How names of figures between 0 and 1 end."""
COMPARED = (E2E_P50, E2E_P95, E2E_P99, JITTER, TTFT_P50, TTFT_P99, TPOT_P50, ANSWERS, TOKENS, GOODPUT, ERRORS, SHED)


def view_table(
    groups: Mapping[str, Sequence[Line]], phases: Sequence[PhaseFigures], own_rows: Mapping[str, Sequence[Row]]
) -> str:
    """A column for each phase; ``own_rows``: what belongs to a group and was measured for the whole run."""
    rows: list[Row] = []
    for title, group in groups.items():
        rows.append([Cell(title, "part"), *(Cell("", "part") for _ in phases)])
        rows += [[line.name, *(_shown(line, each) for each in phases)] for line in group]
        rows += [[*row, *("" for _ in phases[1:])] for row in own_rows.get(title, ())]
    has_targets = len({each.target for each in phases}) > 1
    heads = [f"{each.phase} · {each.target}" if has_targets else each.phase for each in phases]
    return table(["", *heads], rows)


def _shown(line: Line, phase: PhaseFigures) -> Cell:
    value = line.get(phase)
    return Cell(line.show(value), "soft" if value is None else "")


def consistency_rows(consistency: Mapping[str, Any]) -> list[Row]:
    """Same question, same answer (SPEC S2-37): every share and similarity that was measured."""
    found: list[Row] = []
    for name, value in consistency.items():
        if isinstance(value, Mapping):
            found += [[f"{name}: {inner}", text] for inner, text in consistency_rows(value)]
        elif isinstance(value, int | float) and name.endswith(SHARES):
            found.append([name.replace("_", " "), share_text(value)])
    return found


def comparison_table(phases: Sequence[PhaseFigures]) -> str:
    """Targets of one run, or two runs: a block for each phase, and each side's ratio to the first."""
    sides = [*dict.fromkeys(each.target for each in phases)]
    if len(sides) < 2:
        return ""
    rows: list[Row] = []
    for name in dict.fromkeys(each.phase for each in phases):
        own = {each.target: each for each in phases if each.phase == name}
        if len(own) > 1:
            rows.append([Cell(name, "part"), *(Cell("", "part") for _ in range(2 * len(sides) - 1))])
            rows += [_compared(line, [own.get(side) for side in sides]) for line in COMPARED]
    heads: list[str | Cell] = ["", sides[0]]
    for side in sides[1:]:
        heads += [side, Cell("ratio", tip=f"{side} divided by {sides[0]}")]
    return table(heads, rows) if rows else ""


def _compared(line: Line, sides: Sequence[PhaseFigures | None]) -> Row:
    values = [None if side is None else line.get(side) for side in sides]
    row: list[str | Cell] = [line.name, line.show(values[0])]
    for value in values[1:]:
        row += [line.show(value), Cell(ratio_text(value / values[0]) if value is not None and values[0] else NOTHING)]
    return row


def chance_table(compared: Mapping[str, Sequence[Mapping[str, Any]]], first: str) -> str:
    """Of targets that took turns (``side_by_side.Ratio``): is the difference more than chance?"""
    rows: list[Row] = []
    for target, ratios in compared.items():
        for found in ratios:
            ratio = Ratio(**found)
            text = Cell(ratio.text, "" if ratio.is_clear else "soft")
            rows.append([ratio.phase, f"{target} / {first}", ratio.figure, text, f"{ratio.turns}"])
    heads = ("phase", "ratio of", "figure", "median over turns, 95 % interval", "turns")
    return table(heads, rows, "left") if rows else ""


def score_table(card: Mapping[str, Any], targets: Sequence[str]) -> str:
    """The first clear difference decides, in the order of the rows (``ScoreCard.rows``)."""
    rows = card.get("rows", ())
    return table(("tier", "figure", *targets), rows, "left") if rows else ""


def score_words(card: Mapping[str, Any]) -> str:
    """Who is better, and by what."""
    if not card.get("best"):
        return "No clear difference in anything."
    return f"{card['best']} is better, decided by: {card['decided_by']}. Stability comes first; nothing is weighed."


def knee_table(knees: Mapping[str, Any]) -> str:
    """A row for each target whose steps were looked at."""
    rows = []
    for target, found in knees.items():
        if isinstance(found, Mapping):
            load, limit, rate = (_number(found.get(name)) for name in ("load", "limit", "rate_per_s"))
            unit = str(found.get("unit", ""))
            p95, why = seconds_text(found.get("p95_s")), str(found.get("why", ""))
            rows.append((target, f"{load} {unit}", f"{limit} {unit}", rate, p95, why))
    return table(("target", "knee", "limit", "answers/s there", "P95 there", "why"), rows, "left wrap") if rows else ""


def break_table(found: Mapping[str, Any]) -> str:
    """The climb of a run until failure (``Climb.told``), lightest step first."""
    steps = sorted(found.get("steps", ()), key=lambda step: step["users"])
    rows: list[Row] = [
        (
            f"{step['users']}",
            _number(step["answered_per_s"]),
            *(seconds_text(step[name]) for name in ("p50_s", "p95_s", "p99_s")),
            share_text(step["error_rate"]),
            share_text(step["shed_rate"]),
            Cell(step["why"] or "held", "left bad" if step["why"] else "left good"),
        )
        for step in steps
    ]
    heads = ("users", "answers/s", "E2E P50", "P95", "P99", "errors", "shed", Cell("what broke", "left"))
    return table(heads, rows, "wrap") if rows else ""


def break_words(found: Mapping[str, Any]) -> str:
    """Where it broke, in a sentence."""
    held, broke = found.get("last_good_users"), found.get("first_bad_users")
    if broke is None:
        return f"It did not break: {found.get('ended') or found.get('why', '')}"
    return f"It held {held or 0} users and broke at {broke}: {found.get('why', '')}"
