from __future__ import annotations

from itertools import pairwise

from tidegate.simulate.report import report
from tidegate.simulate.run import simulate
from tidegate.simulate.sweep import CAPS, SWEEP, best_cap, runs_of


def goodput(policy: str) -> float:
    found: float = report(simulate("silence-then-200", policy, 1))["goodput_requests"]
    return found


def test_caps_go_from_a_thousand_tokens_to_sixty_four_thousand() -> None:
    assert (CAPS[0], CAPS[-1]) == (1000, 64_000)
    assert all(1.3 < after / before < 1.5 for before, after in pairwise(CAPS))


def test_no_cap_of_the_sweep_is_better_than_the_one_that_it_finds() -> None:
    best = goodput(f"cap:{best_cap('silence-then-200', 1)}")
    assert best == max(goodput(f"cap:{int(cap)}") for cap in (*CAPS[::3], best_cap("silence-then-200", 1)))
    assert best > goodput("cap:1000")


def test_a_sweep_is_played_with_every_seed_and_says_which_cap_it_found() -> None:
    runs = runs_of("silence-then-200", SWEEP, (1, 2))
    assert [(run.policy, run.seed) for run in runs] == [(SWEEP, 1), (SWEEP, 2)]
    assert {run.played for run in runs} == {f"cap:{best_cap('silence-then-200', 1)}"}
    assert report(runs[0])["played"] == runs[0].played


def test_any_other_policy_is_itself() -> None:
    (run,) = runs_of("silence-then-200", "native", (3,))
    assert (run.seed, report(run)["played"]) == (3, "native")
