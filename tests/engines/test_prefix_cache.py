"""What a simulated engine holds of earlier prompts, and what that saves."""

from __future__ import annotations

from tidegate.engines.prefix_cache import PrefixCache
from tidegate.engines.simulated import EngineEventKind, SimulatedConfig, SimulatedEngine
from tidegate.engines.step_model import StepModel

STEP = StepModel.from_ms(fixed=10, prefill=1, sequence=0, context=0)
CONFIG = SimulatedConfig(step=STEP, kv_tokens=4000, max_sequences=8, chunk_tokens=1000, cached_block_tokens=100)


def first_token_s(
    engine: SimulatedEngine, number: int, prompt_tokens: int, blocks: tuple[int, ...], now: float
) -> float:
    assert engine.submit(number, prompt_tokens, 1, now, blocks=blocks)
    (at,) = [each.at for each in engine.advance(now + 100) if each.kind is EngineEventKind.FIRST_TOKEN]
    return round(at - now, 6)


def test_what_was_read_is_not_computed_again() -> None:
    engine = SimulatedEngine(CONFIG)
    assert first_token_s(engine, 1, 350, (1, 2, 3), 0.0) == 0.36
    assert first_token_s(engine, 2, 350, (1, 2, 3), 200.0) == 0.06
    assert first_token_s(engine, 3, 350, (1, 7, 3), 400.0) == 0.26
    reading = engine.reading(600.0)
    assert (reading.prefix_asked_tokens, reading.prefix_found_tokens) == (1050, 400)


def test_one_token_is_computed_in_any_case() -> None:
    engine = SimulatedEngine(CONFIG)
    first_token_s(engine, 1, 300, (1, 2, 3), 0.0)
    assert first_token_s(engine, 2, 300, (1, 2, 3), 200.0) == 0.011


def test_a_crash_empties_it_and_without_one_nothing_is_told() -> None:
    engine = SimulatedEngine(CONFIG)
    first_token_s(engine, 1, 350, (1, 2, 3), 0.0)
    engine.crash(150.0)
    engine.restart()
    assert first_token_s(engine, 2, 350, (1, 2, 3), 200.0) == 0.36
    bare = SimulatedEngine(SimulatedConfig(step=STEP, kv_tokens=4000, max_sequences=8, chunk_tokens=1000))
    assert first_token_s(bare, 1, 350, (1, 2, 3), 0.0) == first_token_s(bare, 2, 350, (1, 2, 3), 200.0)
    assert bare.reading(400.0).prefix_asked_tokens is None


def test_the_least_recently_used_blocks_go_first() -> None:
    cache = PrefixCache(3, 100)
    cache.read((1, 2), 200)
    cache.read((3,), 100)
    assert cache.read((1,), 150) == 100
    cache.read((4,), 100)
    assert [cache.read((block,), 200) for block in (3, 4, 1)] == [100, 100, 100]
    assert cache.read((2,), 200) == 0
