"""What is said of all seeds together: each seed against native with the same seed, and the worst of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

NATIVE = "native"
SCHEMA: dict[str, str] = {
    "p95_std_ratio": "p95_std_s of native with the same seed ÷ one's own, so that more is steadier; null where native "
    "is not among the policies, or where one's own is 0",
    "worst": "over the seeds: most errors_rate, degraded_rate (of the burst) and recovery_s, least p95_std_ratio, "
    "done_in_time and chains_in_time (their rates in the burst, else of all); null where there are none",
}

Row = Mapping[str, Any]
Figure = Callable[[Row], float | None]


def against_native(reports: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Adds ``p95_std_ratio`` to reports of one scenario: by policy, one for each seed, in the same order."""
    for each in reports.values():
        for index, report in enumerate(each):
            native = reports[NATIVE][index]["p95_std_s"] if NATIVE in reports else None
            own = report["p95_std_s"]
            report["p95_std_ratio"] = round(native / own, 2) if native is not None and own else None


def worst(reports: Sequence[Row]) -> dict[str, float | None]:
    return {name: _over(choose, map(figure, reports)) for name, (choose, figure) in _WORST.items()}


def _over(choose: Callable[[list[float]], float], values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


def _rate(name: str) -> Figure:
    def find(row: Row) -> float | None:
        found = row[name]
        if found is None:
            return None
        rate: float | None = found["rate"] if found["burst_rate"] is None else found["burst_rate"]
        return rate

    return find


_WORST: dict[str, tuple[Callable[[list[float]], float], Figure]] = {
    "errors_rate": (max, lambda row: row["errors"]["rate"]),
    "degraded_rate": (max, lambda row: None if row["burst"] is None else row["burst"]["degraded_rate"]),
    "recovery_s": (max, lambda row: row["recovery_s"]),
    "p95_std_ratio": (min, lambda row: row["p95_std_ratio"]),
    "done_in_time": (min, _rate("done_in_time")),
    "chains_in_time": (min, _rate("chains")),
}
