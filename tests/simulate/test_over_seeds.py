from __future__ import annotations

from typing import Any

from tidegate.simulate.over_seeds import against_native, worst


def row(std_s: float | None, **others: Any) -> dict[str, Any]:
    nothing = {"errors": {"rate": 0.0}, "burst": None, "recovery_s": None, "done_in_time": None, "chains": None}
    return nothing | {"p95_std_s": std_s} | others


def test_each_seed_stands_against_native_with_the_same_seed() -> None:
    reports = {
        "tidegate": [row(0.1), row(0.5), row(0.0), row(None)],
        "native": [row(6.0), row(8.0), row(7.0), row(5.0)],
    }
    against_native(reports)
    assert [each["p95_std_ratio"] for each in reports["tidegate"]] == [60.0, 16.0, None, None]
    assert [each["p95_std_ratio"] for each in reports["native"]] == [1.0] * 4


def test_without_native_there_is_no_ratio() -> None:
    reports = {"tidegate": [row(0.1)]}
    against_native(reports)
    assert reports["tidegate"][0]["p95_std_ratio"] is None


def test_the_worst_of_the_seeds_is_the_most_or_the_least_as_it_is_meant() -> None:
    rates = [{"rate": 0.9, "burst_rate": 0.8}, {"rate": 0.9, "burst_rate": 0.99}]
    reports = [
        row(0.1, errors={"rate": 0.1}, burst={"degraded_rate": 0.2}, recovery_s=3.0, done_in_time=rates[0]),
        row(0.2, errors={"rate": 0.2}, burst={"degraded_rate": 0.1}, recovery_s=1.0, done_in_time=rates[1]),
    ]
    against_native({"native": reports})
    assert worst(reports) == {
        "errors_rate": 0.2,
        "degraded_rate": 0.2,
        "recovery_s": 3.0,
        "p95_std_ratio": 1.0,
        "done_in_time": 0.8,
        "chains_in_time": None,
    }
    plain = [row(0.1, chains={"rate": 0.7, "burst_rate": None})]
    against_native({"native": plain})
    assert worst(plain)["chains_in_time"] == 0.7
