from __future__ import annotations

import pytest

from tidegate.engines.presets import PAIRS, preset
from tidegate.errors import ConfigError


@pytest.mark.parametrize(("gpu", "model"), PAIRS)
def test_every_preset_makes_an_engine(gpu: str, model: str) -> None:
    config = preset(gpu, model, chunk_tokens=512)
    assert config.step.fixed_ps > 0
    assert config.chunk_tokens == 512


def test_an_unknown_pair_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="A100/llama-3-8b"):
        preset("B300", "llama-3-8b")
