"""Answers to prompts of about one length."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFigures:
    """Lengths double with every other of them: ``tokens`` is their mean, as the engine counted them where it did."""

    tokens: float
    count: int
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    e2e_p50_s: float
    e2e_p95_s: float
