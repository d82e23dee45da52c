from __future__ import annotations

from random import Random

import pytest

from tidegate.engines.presets import preset
from tidegate.simulate.arrivals import Arrival, Mix
from tidegate.simulate.capacity import saturated_rate
from tidegate.simulate.lookalike import lookalike
from tidegate.simulate.scenarios.campaign import MIX


def test_an_a100_saturates_at_six_to_eight_chats_a_second() -> None:
    """Vidur puts Llama-3-8B on one A100 and the Azure chat trace at 6.45; the project's prototype at 7.08."""
    rate = saturated_rate(preset("A100", "llama-3-8b", chunk_tokens=512), lookalike("azure-conv", 1))
    assert 6.0 <= rate <= 8.0


@pytest.mark.parametrize(("chunk_tokens", "prototype_per_s"), [(512, 34.0), (2048, 39.5)])
def test_four_a100_serve_the_campaign_mix_as_fast_as_the_prototype_did(
    chunk_tokens: int, prototype_per_s: float
) -> None:
    arrivals: list[Arrival] = list(Mix(MIX, Random(1)).at([0.0] * 4000))
    rate = 4 * saturated_rate(preset("A100", "llama-3-8b", chunk_tokens=chunk_tokens), arrivals)
    assert rate == pytest.approx(prototype_per_s, rel=0.1)


def test_a_capacity_needs_enough_answers() -> None:
    with pytest.raises(ValueError, match="at least 10"):
        saturated_rate(preset("A100", "llama-3-8b"), [Arrival(0.0, 10, 10, "")] * 9)
