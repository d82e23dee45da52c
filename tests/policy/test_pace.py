"""What is compared of replicas: medians per token, of windows that have samples enough."""

from __future__ import annotations

from tidegate.policy.pace import MOST_SAMPLES, Pace


def test_a_window_is_closed_when_it_has_enough_samples_and_gives_its_median() -> None:
    pace = Pace()
    for seconds in (1.0, 2.0, 30.0):
        pace.note_first(512, seconds)
    assert not pace.close(4, 1.0)
    pace.note_first(512, 3.0)
    assert pace.close(4, 2.0)
    assert (pace.first_s, pace.first_at) == (2.5 / 1024, 2.0)
    assert (pace.whole_s, pace.whole_at) == (0.0, 0.0)
    assert not pace.close(1, 3.0)


def test_whole_answers_have_a_window_of_their_own() -> None:
    pace = Pace()
    for seconds in (1.0, 2.0, 3.0):
        pace.note_whole(0, 68, seconds)
    assert pace.close(3, 1.0)
    assert (pace.whole_s, pace.first_at) == (0.02, 0.0)


def test_prompts_of_any_length_are_comparable() -> None:
    short, long = Pace(), Pace()
    for each, tokens in ((short, 88), (long, 88_000)):
        each.note_first(tokens, (tokens + 512) * 1e-4)
        each.close(1, 1.0)
    assert abs(short.first_s - long.first_s) < 1e-12


def test_a_window_is_bounded() -> None:
    pace = Pace()
    for _ in range(MOST_SAMPLES):
        pace.note_first(0, 1.0)
        pace.note_whole(0, 0, 1.0)
    for _ in range(1000):
        pace.note_first(0, 9.0)
        pace.note_whole(0, 0, 9.0)
    pace.close(1, 1.0)
    assert (pace.first_s, pace.whole_s) == (1.0 / 512, 1.0 / 32)


def test_who_was_away_begins_anew() -> None:
    pace = Pace()
    pace.note_first(0, 1.0)
    pace.note_whole(0, 0, 1.0)
    pace.close(1, 1.0)
    pace.note_first(0, 1.0)
    pace.forget()
    assert not pace.close(1, 2.0)
    assert (pace.first_at, pace.whole_at) == (0.0, 0.0)


def beside(seconds: float, at: float = 0.0) -> Pace:
    """A replica with one peer that took so long for a prompt of 512 tokens, and for an answer of 68."""
    own, peer = Pace(), Pace()
    own.peers = (peer,)
    peer.note_first(512, seconds)
    peer.note_whole(0, 68, seconds)
    peer.close(1, at)
    return own


def test_a_probe_is_slow_beside_its_peers_of_the_last_seconds_only() -> None:
    own = beside(1.0, at=5.0)
    assert own.is_slow_first(512, 3.1, 14.9)
    assert not own.is_slow_first(512, 2.9, 14.9)
    assert not own.is_slow_first(512, 3.1, 15.0)
    assert own.is_slow_whole(0, 68, 3.1, 14.9)
    assert not own.is_slow_whole(0, 68, 2.9, 14.9)


def test_what_is_fast_is_not_slow_beside_anybody() -> None:
    own = beside(0.001, at=1.0)
    assert not own.is_slow_first(512, 0.1, 1.0)
    assert not own.is_slow_whole(0, 68, 0.5, 1.0)


def test_slowness_is_that_of_windows_which_were_closed_just_now() -> None:
    own = beside(1.0, at=1.0)
    own.note_first(512, 4.0)
    own.close(1, 2.0)
    assert own.slowness(2.0) == 4.0
    own.note_whole(0, 68, 5.0)
    own.close(1, 3.0)
    assert own.slowness(3.0) == 5.0
    assert own.slowness(4.0) == 0.0


def test_long_prompts_with_short_answers_are_not_slow_for_it() -> None:
    own = beside(1.0, at=1.0)
    assert own.is_slow_whole(0, 1, 2.0, 1.0)
    assert not own.is_slow_whole(16_000, 1, 4.0, 1.0)
