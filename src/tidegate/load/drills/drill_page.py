"""Results of drills as one HTML file that needs nothing else."""

from __future__ import annotations

from html import escape

from tidegate.load.drills.drill_results import DrillResults
from tidegate.load.drills.findings import Findings
from tidegate.load.drills.restart_check import RestartCheck
from tidegate.load.figure_text import count_text, ratio_text, seconds_text, share_text
from tidegate.load.report_axes import number_axis, time_axis
from tidegate.load.report_frame import Legend, Span, time_chart
from tidegate.load.report_html import Cell, figures, lines, named, section, table
from tidegate.load.report_style import STYLE
from tidegate.load.verdict import Verdict
from tidegate.simulate.canvas import COLORS, Canvas
from tidegate.simulate.charts import Chart

P95, ERRORS = COLORS[0], COLORS[1]
NO_TIME = "not seen"
MIB = 1 << 20


def word_of(findings: Findings) -> str:
    if findings.skipped:
        return "SKIPPED"
    return "PASSED" if findings.passed else "FAILED"


def drill_page(results: DrillResults) -> str:
    title = escape(f"Drills: {results.deployment}")
    parts = [_head(results), section("Summary", _summary(results)), *map(_drill, results.findings)]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _head(results: DrillResults) -> str:
    word = "PASSED" if results.passed else "FAILED"
    counts = [word_of(each) for each in results.findings]
    told = ", ".join(f"{counts.count(each)} {each.lower()}" for each in ("PASSED", "FAILED", "SKIPPED"))
    facts = [
        ("deployment", results.deployment),
        ("began", results.began),
        ("steady load", f"{results.rate_per_s:g} requests/s"),
        ("form", "short" if results.is_short else "full"),
        ("seed", str(results.seed)),
    ]
    return (
        f'<header><div class="top"><h1>Drills · {escape(results.deployment)}</h1>'
        f'<span class="badge {word}">{word}</span></div><p class="why">{escape(told)}</p>'
        f"{named(facts)}<pre>{escape(results.command)}</pre>{lines(results.notes)}</header>"
    )


def _summary(results: DrillResults) -> str:
    heads = ["drill", "", "detected", "recovered", "lost", "duplicated", "late", "shed", "degraded", "longest wait"]
    return table(heads, [_row(each) for each in results.findings])


def _row(each: Findings) -> list[str | Cell]:
    if each.skipped:
        return [each.drill, _word(each), Cell(each.skipped, look="left soft"), *[""] * 7]
    outcomes = each.outcomes
    return [
        each.drill,
        _word(each),
        time_text(each.detected_s),
        time_text(each.recovered_s),
        count_text(each.lost),
        "nobody could tell" if each.duplicated is None else count_text(each.duplicated),
        count_text(each.late),
        count_text(outcomes.get("shed", 0)),
        count_text(outcomes.get("degraded", 0)),
        seconds_text(each.longest_s),
    ]


def time_text(value: float | None) -> str:
    return NO_TIME if value is None else "at once" if value == 0 else seconds_text(value)


def _word(each: Findings) -> Cell:
    word = word_of(each)
    return Cell(word, look={"PASSED": "good", "FAILED": "bad"}.get(word, "soft"))


def _drill(each: Findings) -> str:
    if each.skipped:
        return section(each.drill, lines([f"skipped: {each.skipped}"]), words=each.question)
    alarms = [f"ended early: {each.aborted}"] if each.aborted else []
    alarms += [f"NOT PUT BACK: {line}" for line in each.left_broken]
    ends = ", ".join(f"{count} {name}" for name, count in sorted(each.outcomes.items()))
    facts = [
        ("fault", each.fault),
        ("requirements", ", ".join(each.rows)),
        ("baseline P95", f"{seconds_text(each.baseline_p95_s)} of {each.baseline_requests} requests"),
        ("errors before it", share_text(each.baseline_error_share)),
        ("requests from the fault on", f"{each.due}: {ends}"),
    ]
    if each.codes:
        facts.append(
            ("codes of errors and refusals", ", ".join(f"{count} {name}" for name, count in each.codes.items()))
        )
    return section(
        each.drill,
        lines(alarms, "alarm"),
        _bars(each.verdicts),
        figures([_course(each)] if each.moments else []),
        _restarts(each.restarts),
        named(facts),
        lines(each.notes),
        words=each.question,
    )


def _bars(verdicts: list[Verdict]) -> str:
    rows: list[list[str | Cell]] = [
        [
            Cell(verdict.bar, look="left"),
            verdict.row,
            verdict.measured,
            _met(verdict),
            Cell(verdict.why, look="left soft"),
        ]
        for verdict in verdicts
    ]
    return table(["bar", "row", "measured", "", "what to look at"], rows, "wrap") if rows else ""


def _met(verdict: Verdict) -> Cell:
    if verdict.passed is None and not verdict.is_required:
        return Cell("left open", look="soft", tip="this deployment does not show it")
    return Cell(*(("met", "good") if verdict.passed else ("missed", "bad")))


def _restarts(checks: list[RestartCheck]) -> str:
    heads = ["restarted", "model", "serves again", "first request", "second", "cached tokens", "memory", "GPU memory"]
    rows: list[list[str | Cell]] = [
        [
            check.replica,
            "loaded" if check.is_loaded else Cell(check.problem or "not loaded", look="bad"),
            seconds_text(check.back_s),
            seconds_text(check.first_request_s),
            seconds_text(check.second_request_s),
            " → ".join(map(count_text, (check.cached_before, check.cached_first, check.cached_second))),
            f"{_mib(check.resident_before_bytes)} → {_mib(check.resident_after_bytes)} ({ratio_text(check.residual)})",
            f"{_mib(check.gpu_before_bytes)} → {_mib(check.gpu_after_bytes)}",
        ]
        for check in checks
    ]
    return table(heads, rows) if rows else ""


def _mib(size_bytes: int | None) -> str:
    return "–" if size_bytes is None else f"{size_bytes / MIB:.0f} MiB"


def _course(each: Findings) -> Canvas:
    """P95 by second, errors as dots on the line of zero, the fault shaded and named."""
    ended_at = max(each.ended_at or 0.0, each.moments[-1][0] + 1.0)
    broken_at = ended_at if each.broken_at is None else each.broken_at
    healed_at = ended_at if each.healed_at is None else each.healed_at
    spans = [
        Span("baseline", 0.0, broken_at),
        Span(each.drill, broken_at, healed_at, ((broken_at, healed_at),)),
        Span("after", healed_at, ended_at),
    ]
    slow = [p95 for *_, p95 in each.moments if p95 is not None]
    axes = time_axis(0.0, ended_at), number_axis("", slow)
    legend = [Legend("P95 of E2E", P95), Legend("failed requests (dots)", ERRORS)]
    chart = time_chart(
        f"{each.drill}: what clients saw (seconds; each request in the second in which it was due)",
        [span for span in spans if span.begin_s < span.end_s],
        axes,
        legend,
    )
    _draw(chart, each)
    return chart.canvas


def _draw(chart: Chart, each: Findings) -> None:
    known = [(at + 0.5, p95) for at, _, _, p95 in each.moments if p95 is not None]
    chart.canvas.path([chart.place(*point) for point in known], P95)
    for at, answers, errors, _ in each.moments:
        if errors:
            tip = f"second {at:.0f}: {errors} failed, {answers} answered"
            chart.canvas.dot(chart.place(at + 0.5, 0.0), ERRORS, tip, radius=3.0 + min(5.0, errors / 2))
