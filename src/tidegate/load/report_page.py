"""A finished run as one HTML file that loads nothing: to be mailed, kept, and read without a network or a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path

import msgspec

from tidegate.load.definitions import DEFINITIONS
from tidegate.load.figure_text import count_text, p99_text, seconds_text, share_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.played import Played
from tidegate.load.report_cards import CARDS, cards
from tidegate.load.report_charts import beside_charts, earlier_phases, engine_charts, wide_charts
from tidegate.load.report_html import beside, figures, folded, lines, named, section
from tidegate.load.report_style import STYLE
from tidegate.load.report_tables import (
    bars_table,
    codes_table,
    generator_table,
    outcomes_table,
    parts_table,
    phases_table,
    time_split_table,
)
from tidegate.load.report_views import (
    ABOUT_OUTPUT,
    DIMENSIONS,
    LAYERS,
    SHARES,
    Line,
    break_table,
    break_words,
    chance_table,
    comparison_table,
    consistency_rows,
    knee_table,
    score_table,
    score_words,
    view_table,
)
from tidegate.load.result import Result
from tidegate.load.summary_table import reason_of, verdict_of
from tidegate.load.whole_file import write_whole


def write_page(result: Result, path: Path, played: Sequence[Played] = (), against: Result | None = None) -> None:
    """Whole or not at all. Raises ConfigError where it can't be written."""
    write_whole(path, report_page(result, played, against).encode())


def report_page(result: Result, played: Sequence[Played] = (), against: Result | None = None) -> str:
    """``played``: for exact percentile curves; without it they go through the figures of ``result``.

    ``against``: an earlier run to compare with; its targets stand beside this run's as ``earlier: NAME``.
    """
    earlier = earlier_phases(against)
    parts = [
        _head(result),
        *_sections(result, played, earlier),
        _comparison(result, earlier),
        section(
            "Which one?",
            score_table(result.score_card, result.targets),
            words=score_words(result.score_card),
        ),
        *_last_sections(result),
    ]
    title = escape(f"{result.plan}: {', '.join(result.targets)}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main>{''.join(parts)}<footer>Made by Tidegate {version('tidegate')}.</footer></main></body></html>\n"
    )


def _head(result: Result) -> str:
    word = verdict_of(result)
    due = sum(each.all.due for each in result.phases)
    length_s = sum(each.duration_s for each in result.phases)
    facts = [
        ("target", ", ".join(result.targets)),
        ("plan", result.plan),
        ("seed", str(result.seed)),
        ("began", result.began),
        ("load was sent for", seconds_text(length_s)),
        ("requests", count_text(due)),
        *_validity(result.phases),
    ]
    return (
        f'<header><div class="top"><h1>{escape(result.plan)} · {escape(", ".join(result.targets))}</h1>'
        f'<span class="badge {word.split()[0]}">{word}</span></div><p class="why">{escape(reason_of(result))}</p>'
        f"{named(facts)}<pre>{escape(result.command)}</pre>{lines(result.invalid, 'alarm')}</header>"
    )


def _validity(phases: Sequence[PhaseFigures]) -> list[tuple[str, str]]:
    """How far the generator can be trusted, by its worst phase."""
    lags = [each.lag for each in phases if each.lag is not None]
    busiest = max((each.generator_busiest_share for each in phases), default=0.0)
    found = [("generator: busiest process", f"{share_text(busiest)} of a core")]
    if lags:
        found.insert(0, ("generator: sent late, P99", p99_text(max(lags, key=lambda lag: lag.p99))))
    return found


def _sections(result: Result, played: Sequence[Played], earlier: Sequence[PhaseFigures]) -> list[str]:
    phases = result.phases
    if not phases:
        return [section("Figures", '<p class="words">No phase was played.</p>')]
    return [
        section("Key figures", cards(phases), words="By phase; rest the pointer on a card for what it means."),
        section("Bars", bars_table(result.verdicts), words="A bar that could not be judged is not passed."),
        section("Over time", figures(wide_charts(phases, result.targets))),
        section(
            "Percentiles, throughput, gaps",
            beside(beside_charts(result, played, earlier)),
            words="Percentile axis: each step to the right is one more nine. From schedule (dashed) counts from when "
            "a request was due, so that a wait cannot hide behind a generator that waited too.",
        ),
        section(
            "Phases",
            phases_table(phases),
            outcomes_table(phases),
            words="* the largest of fewer than 100 values. Outcomes are counted apart and never added to another.",
        ),
        section(
            "Where the time went",
            time_split_table(phases),
            words="In the gateway's own queue, by its own word, and everything beyond it; an answer that did not wait "
            "there tells nothing. Of means, for percentiles do not add up.",
        ),
    ]


def _last_sections(result: Result) -> list[str]:
    phases = result.phases
    manifest = msgspec.json.format(msgspec.json.encode(result.manifest), indent=2).decode()
    return [
        section("Three dimensions of stability", *_views(DIMENSIONS, result)),
        section("Three layers of capability", *_views(LAYERS, result)),
        section("Same question, same answer?", named(_plain(result.consistency))),
        section("By kind of request", parts_table(phases, "label")),
        section("By tenant", parts_table(phases, "tenant")),
        section("Errors, refusals, replicas", codes_table(phases)),
        section("The engine meanwhile", figures(engine_charts(result)), lines(_engine_notes(result))),
        section(
            "Was the generator fit?",
            generator_table(phases) if phases else "",
            words="Above 80 % of a core in one process, or sent late, it was the generator that was measured.",
        ),
        section("Until it broke", break_table(result.break_point), words=break_words(result.break_point)),
        section("The knee", knee_table(result.knee), words="Where latency starts to degrade: the limit is 0.8 of it."),
        section("Notes", lines(result.notes)),
        section("What was sent", folded("Manifest, with hashes", f"<pre>{escape(manifest)}</pre>")),
        section("What the figures mean", named(_definitions(), "words-list")),
    ]


def _views(groups: Mapping[str, Sequence[Line]], result: Result) -> list[str]:
    """A table for each target."""
    measured = consistency_rows(result.consistency)
    own_rows = {title: measured for title in groups if title in ABOUT_OUTPUT}
    found = []
    for target in result.targets:
        phases = [each for each in result.phases if each.target == target]
        title = f"<h3>{escape(target)}</h3>" if len(result.targets) > 1 else ""
        found += [title, view_table(groups, phases, own_rows)] if phases else []
    return found


def _engine_notes(result: Result) -> list[str]:
    return [str(note) for note in result.engine.get("notes", ())]


def _plain(found: Mapping[str, object], before: str = "") -> list[tuple[str, str]]:
    """Names and figures of nested mappings, flat; lists of anything but plain values are for readers of the JSON."""
    pairs: list[tuple[str, str]] = []
    for name, value in found.items():
        title = before + name.replace("_", " ")
        if isinstance(value, Mapping):
            pairs += _plain(value, f"{title}: ")
        elif name.endswith(SHARES) and isinstance(value, int | float):
            pairs.append((title, share_text(value)))
        elif isinstance(value, list | tuple):
            if all(isinstance(each, str | int | float) for each in value):
                pairs.append((title, ", ".join(map(_plainly, value))))
        else:
            pairs.append((title, _plainly(value)))
    return pairs


def _definitions() -> list[tuple[str, str]]:
    """Those of the key figures first."""
    first = dict.fromkeys(card.key for card in CARDS)
    others = {key: text for key, text in DEFINITIONS.items() if key not in first}
    return [*((key, DEFINITIONS[key]) for key in first), *others.items()]


def _plainly(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _comparison(result: Result, earlier: Sequence[PhaseFigures]) -> str:
    return section(
        "Side by side",
        comparison_table([*result.phases, *earlier]),
        chance_table(result.compared, result.targets[0] if result.targets else ""),
        words="Ratios are to the first column: below 1 is better for times, above 1 for rates.",
    )
