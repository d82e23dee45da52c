"""What people are told about readings."""

from __future__ import annotations

from tidegate.gateway.reading_news import ReadingNews
from tidegate.policy.reading import Reading


class Heard:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.news = ReadingNews(lambda level, text: self.lines.append((level, text)))

    def take(self) -> list[tuple[str, str]]:
        lines, self.lines = self.lines, []
        return lines


def test_a_replica_that_is_not_ready_is_told_once_and_so_is_its_return() -> None:
    heard = Heard()
    heard.news.note("a", Reading(at=1.0, running=0))
    heard.news.note("a", Reading(at=2.0, ready=False, error="no connection"))
    heard.news.note("a", Reading(at=3.0, ready=False, error="no connection"))
    assert heard.take() == [("warning", "a: no connection; it gets no requests until it is ready again")]
    heard.news.note("a", Reading(at=4.0, running=0))
    assert heard.take() == [("info", "a: ready again")]


def test_a_replica_that_was_never_ready_is_no_news() -> None:
    heard = Heard()
    heard.news.note("a", Reading(at=1.0, ready=False, error="it starts"))
    assert heard.take() == []


def test_figures_that_fail_are_told_when_they_are_missing_for_long_and_when_they_come_back() -> None:
    heard = Heard()
    heard.news.note("a", Reading(at=1.0, running=2))
    heard.news.note("a", Reading(at=2.0))
    assert heard.take() == []
    heard.news.note("a", Reading(at=4.0))
    heard.news.note("a", Reading(at=5.0))
    ((level, line),) = heard.take()
    assert level == "warning"
    assert line.startswith("a: its engine tells no figures for 3 s;")
    heard.news.note("a", Reading(at=6.0, running=1))
    assert heard.take() == [("info", "a: its engine tells its figures again")]


def test_an_engine_that_never_told_figures_is_no_news() -> None:
    heard = Heard()
    for at in (1.0, 10.0, 100.0):
        heard.news.note("a", Reading(at=at))
    assert heard.take() == []


def test_a_replica_that_left_is_forgotten() -> None:
    heard = Heard()
    heard.news.note("a", Reading(at=1.0, running=2))
    heard.news.note("b", Reading(at=1.0, running=2))
    heard.news.keep({"b"})
    heard.news.note("a", Reading(at=50.0))
    heard.news.note("a", Reading(at=51.0, ready=False))
    heard.news.note("b", Reading(at=51.0, ready=False))
    assert [line for _, line in heard.take()] == [
        "a: it is not ready; it gets no requests until it is ready again",
        "b: it is not ready; it gets no requests until it is ready again",
    ]
