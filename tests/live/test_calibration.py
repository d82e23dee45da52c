"""A simulated engine fitted to a real one stays near it under loads that it was not fitted to.

Each takes about five minutes and the whole machine: a neighbour that computes makes steps longer at moments that no
model knows. What is too far off is told.
"""

from __future__ import annotations

import pytest

from bench.calibration import CHECKS, ENGINES, measure
from bench.vllm_runs import place

pytestmark = [pytest.mark.live, pytest.mark.slow]

ROUNDS = 3
SECONDS = 30.0


@pytest.mark.parametrize("kind", ENGINES)
def test_p50_and_p95_of_a_fitted_engine_are_near_the_real_ones(kind: str) -> None:
    if kind == "vllm" and not place.is_there():
        pytest.skip(place.MISSING)
    found, most_off = measure(kind, ROUNDS, SECONDS)
    assert {each.phase for each in found.check} == set(CHECKS)
    lines = {
        f"{each.phase}, {each.metric} P{each.share * 100:g}: {each.measured_s:.3f} s, "
        f"simulated {each.simulated_s:.3f} s, {each.error:+.1%}": each.error
        for each in found.check
    }
    far = [line for line, error in lines.items() if abs(error) > most_off]
    assert not far, f"more than {most_off:.0%} off:\n" + "\n".join(far)
