"""The tables of a load report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidegate.load.definitions import DEFINITIONS
from tidegate.load.distribution import LEAST_FOR_P99, Distribution
from tidegate.load.figure_text import NOTHING, count_text, digits, seconds_text, share_text
from tidegate.load.phase_figures import PartFigures, PhaseFigures
from tidegate.load.report_html import Cell, Row, table
from tidegate.load.verdict import Verdict
from tidegate.simulate.canvas import Canvas

BAR_WIDTH, BAR_HEIGHT = 260, 14
QUEUE, MODEL = "#e0a82e", "#0072b2"
VERDICTS = {True: Cell("pass", "good"), False: Cell("FAIL", "bad"), None: Cell("not judged", "warn")}

PartColumn = tuple[str, str, Callable[[PartFigures], str | Cell]]

PART_COLUMNS: tuple[PartColumn, ...] = (
    ("due", "due", lambda part: count_text(part.due)),
    ("E2E P50", "e2e", lambda part: time_cell(part.e2e, "p50")),
    ("P95", "e2e", lambda part: time_cell(part.e2e, "p95")),
    ("P99", "e2e", lambda part: time_cell(part.e2e, "p99")),
    ("P99.9", "e2e", lambda part: time_cell(part.e2e, "p999")),
    ("jitter", "jitter", lambda part: _jitter(part.e2e)),
    ("TTFT P50", "ttft", lambda part: time_cell(part.ttft, "p50")),
    ("P99", "ttft", lambda part: time_cell(part.ttft, "p99")),
    ("errors", "error_rate", lambda part: _alarm(share_text(part.error_rate), part.error_rate, "bad")),
    ("shed", "shed_rate", lambda part: _alarm(share_text(part.shed_rate), part.shed_rate, "warn")),
    ("degraded", "degraded_rate", lambda part: _alarm(share_text(part.degraded_rate), part.degraded_rate, "warn")),
    ("late", "late", lambda part: count_text(part.late)),
    ("good/s", "goodput_per_s", lambda part: digits(part.goodput_per_s)),
)


def time_cell(found: Distribution | None, key: str) -> Cell:
    """A P99 of fewer than 100 values is marked as the largest of them."""
    if found is None:
        return Cell(NOTHING, "soft")
    is_short = key in ("p99", "p999") and found.count < LEAST_FOR_P99
    tip = f"the largest of {found.count} values" if is_short else f"of {found.count} values"
    return Cell(seconds_text(float(getattr(found, key))) + "*" * is_short, tip=tip)


def bars_table(verdicts: Sequence[Verdict]) -> str:
    """What was asked, what was measured, and what to do about it; those that were missed first."""
    has_targets = any(each.target for each in verdicts)
    rows: list[Row] = [
        (
            VERDICTS[each.passed],
            *([each.target] if has_targets else []),
            each.name,
            each.bar,
            each.measured or NOTHING,
            Cell(each.row, "soft still"),
            each.why if each.is_required else f"{each.why} (not required)",
        )
        for each in sorted(verdicts, key=lambda each: (each.passed is True, each.passed is None))
    ]
    heads = ("", *(["target"] if has_targets else []), "figure", "bar", "measured", "row", "what to look at")
    return table(heads, rows, "left wrap") if rows else ""


def phases_table(phases: Sequence[PhaseFigures]) -> str:
    """A row for each phase and target."""
    heads = [*_heads(phases), *_part_heads()]
    return table(heads, [[*_names(each, phases), *_part_row(each.all)] for each in phases], "tight")


def parts_table(phases: Sequence[PhaseFigures], kind: str) -> str:
    """The same by label or by tenant (``kind``), where there are several."""
    rows: list[Row] = []
    for each in phases:
        parts: Mapping[str, PartFigures] = getattr(each, f"{kind}s")
        for name, part in parts.items() if len(parts) > 1 else ():
            rows.append([*_names(each, phases), Cell(name, "left"), *_part_row(part)])
    heads = [*_heads(phases), Cell(kind, "left"), *_part_heads()]
    return table(heads, rows, "tight") if rows else ""


def outcomes_table(phases: Sequence[PhaseFigures]) -> str:
    """Every ending that there was, in counts."""
    names = [*dict.fromkeys(name for each in phases for name, count in each.all.outcomes.items() if count)]
    rows = [
        [
            *_names(each, phases),
            count_text(each.all.due),
            *(_count(each.all.outcomes.get(name, 0)) for name in names),
        ]
        for each in phases
    ]
    return table([*_heads(phases), "due", *names], rows)


def codes_table(phases: Sequence[PhaseFigures]) -> str:
    """Error codes and the replicas that answered."""
    rows = [
        (*_names(each, phases), Cell(_pairs(each.codes), "left"), Cell(_pairs(each.replicas), "left"))
        for each in phases
        if each.codes or each.replicas
    ]
    heads = [*_heads(phases), Cell("codes of errors and refusals", "left"), Cell("answered by", "left")]
    return table(heads, rows, "wrap") if rows else ""


def generator_table(phases: Sequence[PhaseFigures]) -> str:
    """Did the generator do what it was asked to?"""
    rows = [
        (
            *_names(each, phases),
            digits(each.due_rate_per_s),
            digits(each.sent_rate_per_s),
            time_cell(each.lag, "p50"),
            time_cell(each.lag, "p99"),
            share_text(each.generator_busiest_share),
            seconds_text(each.generator_cpu_s),
            Cell(_pairs(each.token_sources), "left"),
            Cell("; ".join(each.invalid) or "valid", "bad left roomy" if each.invalid else "good left"),
        )
        for each in phases
    ]
    heads = [
        *_heads(phases),
        Cell("due/s", tip=DEFINITIONS["due_rate_per_s"]),
        Cell("sent/s", tip=DEFINITIONS["sent_rate_per_s"]),
        Cell("lag P50", tip=DEFINITIONS["lag"]),
        Cell("lag P99", tip=DEFINITIONS["lag"]),
        Cell("busiest process", tip=DEFINITIONS["generator_busiest_share"]),
        "CPU",
        Cell("tokens counted by", "left"),
        Cell("its figures are", "left"),
    ]
    return table(heads, rows)


def time_split_table(phases: Sequence[PhaseFigures]) -> str:
    """Time in the gateway's queue and beyond it (SPEC S1-58), of the answers that tell it."""
    told = [each for each in phases if each.all.queue is not None and each.all.model_time is not None]
    most = max((_mean(each.all.queue) + _mean(each.all.model_time) for each in told), default=0.0)
    rows = [
        (
            *_names(each, phases),
            f"{count_text(_count_of(each.all.queue))} of {count_text(_count_of(each.all.e2e))}",
            seconds_text(_mean(each.all.queue)),
            time_cell(each.all.queue, "p99"),
            seconds_text(_mean(each.all.model_time)),
            time_cell(each.all.model_time, "p99"),
            Cell("", "left", html=_split_bar(_mean(each.all.queue), _mean(each.all.model_time), most)),
        )
        for each in told
    ]
    heads = [
        *_heads(phases),
        "answers that tell it",
        Cell("queue, mean", tip=DEFINITIONS["queue"]),
        "P99",
        Cell("model, mean", tip=DEFINITIONS["model_time"]),
        "P99",
        Cell("mean: queue (yellow), model (blue)", "left"),
    ]
    return table(heads, rows) if rows else ""


def _split_bar(queue_s: float, model_s: float, most_s: float) -> str:
    canvas = Canvas(BAR_WIDTH, BAR_HEIGHT, f"queue {seconds_text(queue_s)}, model {seconds_text(model_s)}")
    scale = BAR_WIDTH / most_s if most_s > 0 else 0.0
    canvas.bar((0, 0), queue_s * scale, BAR_HEIGHT, QUEUE, f"queue {seconds_text(queue_s)}")
    canvas.bar((queue_s * scale, 0), model_s * scale, BAR_HEIGHT, MODEL, f"model {seconds_text(model_s)}")
    return canvas.svg()


def _heads(phases: Sequence[PhaseFigures]) -> list[str | Cell]:
    return ["phase", Cell("target", "left")] if _has_targets(phases) else ["phase"]


def _names(each: PhaseFigures, phases: Sequence[PhaseFigures]) -> list[str | Cell]:
    return [each.phase, Cell(each.target, "left")] if _has_targets(phases) else [each.phase]


def _has_targets(phases: Sequence[PhaseFigures]) -> bool:
    return len({each.target for each in phases}) > 1


def _part_heads() -> list[str | Cell]:
    return [Cell(name, tip=DEFINITIONS[key]) for name, key, _ in PART_COLUMNS]


def _part_row(part: PartFigures) -> list[str | Cell]:
    return [show(part) for _, _, show in PART_COLUMNS]


def _jitter(found: Distribution | None) -> str:
    return NOTHING if found is None or found.jitter is None else f"{found.jitter:.2f}"


def _alarm(text: str, value: float, look: str) -> Cell:
    return Cell(text, look if value > 0 else "soft")


def _count(count: int) -> Cell:
    return Cell(count_text(count), "" if count else "soft")


def _mean(found: Distribution | None) -> float:
    return 0.0 if found is None else found.mean


def _count_of(found: Distribution | None) -> int:
    return 0 if found is None else found.count


def _pairs(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} × {count_text(count)}" for name, count in counts.items()) or NOTHING
