"""Who changed what: lines for the log, and a list of the latest."""

from __future__ import annotations

from itertools import count

from tidegate.gateway.audit import KEPT, Audit


def test_each_change_is_a_line_and_each_refusal_a_warning() -> None:
    said: list[tuple[str, str]] = []
    audit = Audit(lambda level, text: said.append((level, text)), clock=lambda: 7.0)
    audit.note("SIGHUP", "reload", ["retries.ratio: 0.1 -> 0.2", "retries.most: 100 -> 50"])
    audit.note("admin API, ::1", "config", ["tail.enabled: True -> False"], ["retries.ratio: must be at most 1"])
    assert said == [
        ("info", "audit: SIGHUP: reload: retries.ratio: 0.1 -> 0.2"),
        ("info", "audit: SIGHUP: reload: retries.most: 100 -> 50"),
        ("warning", "audit: admin API, ::1: config refused: retries.ratio: must be at most 1"),
    ]
    assert [(each["who"], each["at_unix_s"], len(each["problems"])) for each in audit.latest()] == [
        ("admin API, ::1", 7.0, 1),
        ("SIGHUP", 7.0, 0),
    ]


def test_only_the_latest_are_kept() -> None:
    times = count(1.0)
    audit = Audit(lambda _level, _text: None, clock=lambda: next(times))
    for _ in range(KEPT + 5):
        audit.note("file", "reload", [])
    kept = [each["at_unix_s"] for each in audit.latest()]
    assert (len(kept), kept[0], kept[-1]) == (KEPT, KEPT + 5.0, 6.0)
