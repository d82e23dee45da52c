"""Figures as people read them: three digits and a unit."""

from __future__ import annotations

from tidegate.load.distribution import LEAST_FOR_P99, Distribution

NOTHING = "–"
"""Not measured, which is not the same as 0."""


def seconds_text(value: float | None) -> str:
    """In ms below a second, in minutes from two minutes on."""
    if value is None:
        return NOTHING
    if abs(value) < 1:
        return f"{digits(value * 1000)} ms"
    if value < 120:
        return f"{digits(value)} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def share_text(value: float | None) -> str:
    """In percent. What is above 0 never reads as 0."""
    return NOTHING if value is None else f"{digits(value * 100)} %"


def rate_text(value: float | None) -> str:
    return NOTHING if value is None else f"{digits(value)}/s"


def ratio_text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}×"


def count_text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}".replace(",", "\u202f")


def p99_text(found: Distribution | None) -> str:
    """Of fewer than 100 values it is the largest of them, and says so."""
    if found is None:
        return NOTHING
    return seconds_text(found.p99) + (f" (largest of {found.count})" if found.count < LEAST_FOR_P99 else "")


def digits(value: float) -> str:
    """Three significant ones, and never an exponent."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 99.95:
        return f"{value:.0f}"
    places = 1 if size >= 9.995 else 2 if size >= 0.0995 else 3 if size >= 0.00995 else 4
    text = f"{value:.{places}f}"
    return text if float(text) else f"{value:.6f}".rstrip("0")
