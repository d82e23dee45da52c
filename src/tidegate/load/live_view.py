"""A run while it is played: a panel in a terminal, a line every ten seconds in a log."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from tidegate.load.client_outcome import ClientOutcome
from tidegate.load.figure_text import count_text, p99_text, rate_text, seconds_text, share_text
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

LINE_EVERY_S = 10.0
KEPT = 60
"""Looks that the small curves show."""
BLOCKS = "▁▂▃▄▅▆▇█"
BAR, PANEL = 28, 100
"""Widths in characters."""
COLORS = {
    ClientOutcome.OK: "green",
    ClientOutcome.EXPECTED: "green",
    ClientOutcome.DEGRADED: "yellow",
    ClientOutcome.SHED: "magenta",
    ClientOutcome.UNSENT: "bright_black",
}
"""Of outcomes; the others are red."""


class LiveView:
    """A context manager; ``on_progress`` and ``on_figures`` are what a run calls."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live: Live | None = None
        self._rates: deque[float] = deque(maxlen=KEPT)
        self._firsts: deque[float] = deque(maxlen=KEPT)
        self._phase = ""
        self._told_at_s = 0.0

    def __enter__(self) -> LiveView:
        if self._console.is_terminal:
            from rich.live import Live  # noqa: PLC0415 - a run without a terminal does not pay for it

            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def on_progress(self, progress: Progress) -> None:
        """About once a second."""
        is_new = f"{progress.phase} {progress.target}" != self._phase
        if is_new:
            self._phase = f"{progress.phase} {progress.target}"
            self._rates.clear()
            self._firsts.clear()
            self._told_at_s = progress.elapsed_s
        self._rates.append(progress.sent_rate_per_s or 0.0)
        self._firsts.append(progress.ttft_p50_s or 0.0)
        if self._live is not None:
            self._live.update(self._panel(progress))
        elif progress.elapsed_s - self._told_at_s >= LINE_EVERY_S:
            self._told_at_s = progress.elapsed_s
            self._say(progress_line(progress))

    def on_figures(self, figures: PhaseFigures) -> None:
        """A line that stays, for each finished phase."""
        self._say(figures_line(figures))

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _panel(self, progress: Progress) -> RenderableType:
        from rich.markup import escape  # noqa: PLC0415 - as above
        from rich.panel import Panel  # noqa: PLC0415 - as above
        from rich.table import Table  # noqa: PLC0415 - as above

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bright_black", justify="right")
        grid.add_column()
        for name, text in self._rows(progress):
            grid.add_row(name, text)
        where = escape(f"{progress.phase} · {progress.target}")
        width = min(PANEL, self._console.width)
        return Panel(grid, title=f"[bold]{where}[/]", subtitle=escape(self._title), border_style="cyan", width=width)

    def _rows(self, progress: Progress) -> list[tuple[str, str]]:
        return [
            ("time", f"{_bar(progress)} {_times(progress)}"),
            ("rate", f"{_rates(progress)}  [cyan]{curve([*self._rates])}[/]"),
            ("requests", f"{count_text(progress.sent)} sent, {count_text(progress.in_flight)} in flight"),
            ("TTFT", f"{_pair(progress.ttft_p50_s, progress.ttft_p99_s)}  [cyan]{curve([*self._firsts])}[/]"),
            ("E2E", _pair(progress.e2e_p50_s, progress.e2e_p99_s)),
            ("outcomes", _colored(progress.outcomes)),
            ("sent late", f"P99 {seconds_text(progress.lag_p99_s)}"),
        ]


def progress_line(progress: Progress) -> str:
    """All on one line, in the order of the panel."""
    outcomes = ", ".join(f"{count} {name}" for name, count in progress.outcomes.items() if count)
    return (
        f"{progress.phase} · {progress.target} · {_times(progress)} · {_rates(progress)} · "
        f"{progress.in_flight} in flight · TTFT {_pair(progress.ttft_p50_s, progress.ttft_p99_s)} · "
        f"E2E {_pair(progress.e2e_p50_s, progress.e2e_p99_s)} · {outcomes or 'nothing has ended'}"
    )


def figures_line(figures: PhaseFigures) -> str:
    """What a phase came to."""
    whole = figures.all
    e2e = "no answers" if whole.e2e is None else f"E2E P50 {seconds_text(whole.e2e.p50)} P99 {p99_text(whole.e2e)}"
    doubt = f" · INVALID: {'; '.join(figures.invalid)}" if figures.invalid else ""
    return (
        f"{figures.phase} · {figures.target} · done · {count_text(whole.due)} requests · "
        f"{rate_text(figures.answered_per_s)} answered · {e2e} · errors {share_text(whole.error_rate)} · "
        f"shed {share_text(whole.shed_rate)}{doubt}"
    )


def curve(values: list[float]) -> str:
    """One character for each value, from 0 to the largest."""
    most = max(values, default=0.0)
    if most <= 0:
        return ""
    return "".join(BLOCKS[min(7, int(value / most * 7.999))] for value in values)


def _bar(progress: Progress) -> str:
    share = min(1.0, progress.elapsed_s / progress.duration_s) if progress.duration_s > 0 else 1.0
    done = round(share * BAR)
    return f"[green]{'━' * done}[/][bright_black]{'━' * (BAR - done)}[/]"


def _times(progress: Progress) -> str:
    left_s = progress.duration_s - progress.elapsed_s
    tail = f"{_clock(left_s)} left" if left_s > 0 else "waiting for what is under way"
    return f"{_clock(progress.elapsed_s)} of {_clock(progress.duration_s)}, {tail}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _rates(progress: Progress) -> str:
    if progress.due_rate_per_s is None:
        return f"{rate_text(progress.sent_rate_per_s)} sent"
    return f"{rate_text(progress.sent_rate_per_s)} sent of {rate_text(progress.due_rate_per_s)} due"


def _pair(p50: float | None, p99: float | None) -> str:
    if p50 is None or p99 is None:
        return "–"
    jitter = f" (P99/P50 {p99 / p50:.1f})" if p50 > 0 else ""
    return f"P50 {seconds_text(p50)} P99 {seconds_text(p99)}{jitter}"


def _colored(outcomes: dict[str, int]) -> str:
    found = [
        f"[{COLORS.get(ClientOutcome(name), 'red')}]{count_text(count)} {name}[/]"
        for name, count in outcomes.items()
        if count
    ]
    return "  ".join(found) or "nothing has ended"
