"""What shows that a replica gets on with its work."""

from __future__ import annotations

import pytest

from tidegate.policy.motion import Motion
from tidegate.policy.reading import Reading


@pytest.mark.parametrize(
    ("before", "after", "moved", "told"),
    [
        ({"running": 2, "kv_used_tokens": 100}, {"running": 2, "kv_used_tokens": 116}, True, True),
        ({"running": 2, "kv_used_tokens": 100}, {"running": 1, "kv_used_tokens": 60}, True, False),
        ({"running": 2, "kv_used_tokens": 100}, {"running": 2, "kv_used_tokens": 100}, False, False),
        ({"running": 2}, {"running": 1}, True, False),
        ({"preemptions": 1}, {"preemptions": 2}, True, False),
        ({"running": 1, "waiting": 1}, {"running": 1, "waiting": 7}, False, False),
        ({}, {"kv_used_tokens": 100}, True, False),
        ({}, {}, False, False),
    ],
)
def test_a_reading_that_differs_is_motion_and_kv_that_moves_under_the_same_batch_tells(
    before: dict[str, int], after: dict[str, int], moved: bool, told: bool
) -> None:
    motion = Motion()
    motion.note(None, Reading(1.0, **before))  # type: ignore[arg-type]  # figures only
    motion.note(Reading(1.0, **before), Reading(2.0, **after))  # type: ignore[arg-type]  # figures only
    assert (motion.at == 2.0, motion.is_told) == (moved, told)


def test_what_was_seen_to_tell_once_does_so_from_there_on_and_time_never_goes_back() -> None:
    motion = Motion()
    motion.at = 9.0
    motion.note(Reading(1.0, running=1, kv_used_tokens=1), Reading(2.0, running=1, kv_used_tokens=2))
    motion.note(Reading(2.0, running=1, kv_used_tokens=2), Reading(3.0, running=1, kv_used_tokens=2))
    assert (motion.at, motion.is_told) == (9.0, True)


def test_a_new_process_moves() -> None:
    motion = Motion()
    motion.come_back(5.0)
    assert (motion.at, motion.began_at) == (5.0, 5.0)


def test_the_longest_stillness_under_work_is_remembered_and_fades() -> None:
    motion = Motion()
    motion.at = 1.0
    motion.note(Reading(1.0, running=1, kv_used_tokens=1), Reading(21.0, running=1, kv_used_tokens=2))
    assert motion.gap_s == 20.0
    for second in range(22, 200):
        kv = second % 2
        motion.note(
            Reading(second - 1.0, running=1, kv_used_tokens=1 - kv),
            Reading(float(second), running=1, kv_used_tokens=kv),
        )
    assert motion.gap_s == 1.0
    motion.note(Reading(199.0, running=0, kv_used_tokens=1), Reading(900.0, running=1, kv_used_tokens=2))
    assert motion.gap_s == 1.0
