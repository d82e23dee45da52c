"""What can be seen of repeats and jobs."""

from __future__ import annotations

from tests.lens.test_shaping_gauges import shown
from tidegate.lens.repeat_gauges import repeat_gauges
from tidegate.policy.idempotency import IdempotencyConfig, KeyedAnswers


def test_what_is_kept_and_parked_is_shown() -> None:
    answers: KeyedAnswers[str] = KeyedAnswers(IdempotencyConfig())
    answers.begin(("a", b"k"), b"", "")
    answers.end(("a", b"k"), 200, 7, 0.0, is_complete=True)
    jobs = {"jobs": 5, "held_bytes": 9, "parked": 2, "offered": 1, "at_door": 3}
    found = shown(list(repeat_gauges({"keyed": answers.view(), "jobs": jobs})))
    assert found["tidegate_keyed_answers",] == 1
    assert found["tidegate_keyed_bytes",] == 7
    assert found["tidegate_keyed_running",] == 0
    assert (found["tidegate_jobs",], found["tidegate_jobs_parked",], found["tidegate_jobs_bytes",]) == (5, 2, 9)


def test_a_view_without_them_shows_nothing() -> None:
    assert list(repeat_gauges({})) == []
