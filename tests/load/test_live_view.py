from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from tests.load.samples_of_a_run import Shape, a_run
from tidegate.load.live_view import LiveView, curve
from tidegate.load.progress import Progress


def progress(elapsed_s: float, **given: object) -> Progress:
    fields: dict[str, object] = {
        "phase": "soak",
        "target": "a",
        "elapsed_s": elapsed_s,
        "duration_s": 60.0,
        "due": 1200,
        "sent": 1100,
        "in_flight": 7,
        "outcomes": {"ok": 1090, "shed": 2, "error": 1, "unexpected": 0},
        "due_rate_per_s": 20.0,
        "sent_rate_per_s": 19.5,
        "ttft_p50_s": 0.2,
        "ttft_p99_s": 0.9,
        **given,
    }
    return Progress(**fields)  # type: ignore[arg-type]  # as many of its fields as a test wants to change


def screen(*, is_terminal: bool, width: int = 300) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=is_terminal, width=width, color_system=None), text


def test_a_log_gets_a_line_every_ten_seconds() -> None:
    console, text = screen(is_terminal=False)
    with LiveView(console, "plan") as view:
        for second in range(25):
            view.on_progress(progress(float(second)))
    lines = text.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "soak · a · 0:10 of 1:00, 0:50 left · 19.5/s sent of 20.0/s due · 7 in flight · "
        "TTFT P50 200 ms P99 900 ms (P99/P50 4.5) · E2E – · 1090 ok, 2 shed, 1 error"
    )


def test_each_phase_begins_its_own_ten_seconds() -> None:
    console, text = screen(is_terminal=False)
    with LiveView(console, "plan") as view:
        view.on_progress(progress(0.0))
        view.on_progress(progress(11.0, phase="burst", outcomes={}, due_rate_per_s=None))
        view.on_progress(progress(61.0, phase="burst", outcomes={}, due_rate_per_s=None))
    assert text.getvalue() == (
        "burst · a · 1:01 of 1:00, waiting for what is under way · 19.5/s sent · 7 in flight · "
        "TTFT P50 200 ms P99 900 ms (P99/P50 4.5) · E2E – · nothing has ended\n"
    )


def test_a_terminal_shows_outcomes_apart_and_small_curves() -> None:
    console, text = screen(is_terminal=True, width=110)
    with LiveView(console, "plan [x]") as view:
        view.on_progress(progress(30.0, sent_rate_per_s=None))
        view.on_progress(progress(31.0))
    with LiveView(console, "plan") as view:
        view.on_progress(progress(0.0, outcomes={}))
    shown = text.getvalue()
    assert "1\u202f090 ok  2 shed  1 error" in shown
    assert "nothing has ended" in shown
    assert "plan [x]" in shown
    assert "▁█" in shown


def test_a_finished_phase_leaves_a_line_and_says_what_is_wrong_with_it() -> None:
    console, text = screen(is_terminal=False)
    result, _ = a_run((Shape(name="x", duration_s=10.0), Shape(name="none", duration_s=5.0, rate_per_s=1e-6)))
    result.phases[0] = replace(result.phases[0], invalid=("the generator lagged",))
    view = LiveView(console, "plan")
    for each in result.phases:
        view.on_figures(each)
    first, second = text.getvalue().splitlines()
    assert first.endswith("· INVALID: the generator lagged")
    assert "E2E P50" in first
    assert "no answers" in second


def test_a_curve_is_drawn_from_nothing_to_the_largest() -> None:
    assert curve([0.0, 1.0, 2.0]) == "▁▄█"
    assert curve([0.0, 0.0]) == ""
    assert curve([]) == ""
