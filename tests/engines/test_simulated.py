from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.engines.simulated import EngineEvent, EngineEventKind, SimulatedConfig, SimulatedEngine
from tidegate.engines.step_model import StepModel
from tidegate.errors import ConfigError

MS = 1e-3
COST = StepModel.from_ms(fixed=10.0, prefill=1.0, sequence=0.0, context=0.0)
CONFIG = SimulatedConfig(step=COST, kv_tokens=4096, max_sequences=4, chunk_tokens=32)


def run(engine: SimulatedEngine, until: float = 1e6) -> list[EngineEvent]:
    return engine.advance(until)


def times(events: list[EngineEvent], kind: EngineEventKind) -> dict[int, float]:
    return {event.id: event.at for event in events if event.kind is kind}


def test_a_prompt_takes_one_step_per_chunk_and_its_first_token_comes_at_the_end() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=80, output_tokens=3, now=0.0)
    events = run(engine)
    prefill_s = (3 * 10 + 80) * MS
    assert times(events, EngineEventKind.FIRST_TOKEN)[1] == pytest.approx(prefill_s)
    assert times(events, EngineEventKind.FINISHED)[1] == pytest.approx(prefill_s + 2 * 10 * MS)


def test_decoding_sequences_take_one_token_of_the_budget_each_before_prompts() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=1, output_tokens=100, now=0.0)
    run(engine, until=11 * MS)
    engine.submit(2, prompt_tokens=62, output_tokens=1, now=11 * MS)
    # The step under way at the arrival, then two steps that compute 31 tokens beside one decode.
    assert times(run(engine), EngineEventKind.FIRST_TOKEN)[2] == pytest.approx((11 + 10 + 2 * (10 + 31)) * MS)


def test_the_step_time_counts_prompt_sequences_and_context() -> None:
    cost = StepModel.from_ms(fixed=10.0, prefill=1.0, sequence=0.5, context=0.01)
    engine = SimulatedEngine(replace(CONFIG, step=cost))
    engine.submit(1, prompt_tokens=20, output_tokens=3, now=0.0)
    prefill_ms, first_ms, second_ms = 10 + 20 + 0.5, 10 + 0.5 + 0.20, 10 + 0.5 + 0.21
    finished = times(run(engine), EngineEventKind.FINISHED)[1]
    assert finished == pytest.approx((prefill_ms + first_ms + second_ms) * MS)


def test_prompts_over_eight_thousand_tokens_pay_for_their_attention() -> None:
    cost = StepModel.from_ms(fixed=1.0, prefill=0.0, sequence=0.0, context=0.0, quadratic=1e-6)
    config = SimulatedConfig(step=cost, kv_tokens=32_768, max_sequences=4, chunk_tokens=5000)
    engine = SimulatedEngine(config)
    engine.submit(1, prompt_tokens=10_000, output_tokens=1, now=0.0)
    assert run(engine)[0].at == pytest.approx((2 * 1.0 + 1e-6 * 10_000**2 / 2) * MS)
    engine.submit(2, prompt_tokens=8192, output_tokens=1, now=1.0)
    assert run(engine)[0].at == pytest.approx(1.0 + 2 * MS)


def test_no_more_sequences_run_than_the_engine_has_places() -> None:
    engine = SimulatedEngine(CONFIG)
    for request_id in range(6):
        engine.submit(request_id, prompt_tokens=1, output_tokens=50, now=0.0)
    reading = engine.reading(0.2)
    assert (reading.running, reading.waiting) == (4, 2)


def test_admission_looks_at_the_prompt_only_so_a_full_pool_preempts_the_latest_arrival() -> None:
    config = SimulatedConfig(step=COST, kv_tokens=64, max_sequences=4, chunk_tokens=64)
    engine = SimulatedEngine(config)
    engine.submit(1, prompt_tokens=16, output_tokens=40, now=0.0)
    engine.submit(2, prompt_tokens=16, output_tokens=40, now=0.0)
    events = run(engine)
    assert engine.preemptions == 1
    finished = times(events, EngineEventKind.FINISHED)
    assert finished[1] < finished[2]
    stalled = next(event for event in events if event.id == 2 and event.kind is EngineEventKind.FINISHED)
    assert stalled.tokens == 40
    # It stood still until the first one was done, then computed prompt and answer again.
    assert stalled.worst_gap_s > 5 * 10 * MS


def test_a_preempted_sequence_goes_before_those_that_still_wait() -> None:
    config = SimulatedConfig(step=COST, kv_tokens=64, max_sequences=2, chunk_tokens=64)
    engine = SimulatedEngine(config)
    for request_id in range(1, 4):
        engine.submit(request_id, prompt_tokens=16, output_tokens=40, now=0.0)
    finished = times(run(engine), EngineEventKind.FINISHED)
    assert sorted(finished, key=lambda request_id: finished[request_id]) == [1, 2, 3]


def test_an_abort_is_confirmed_at_the_end_of_the_step_and_frees_the_pool() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=20, output_tokens=1000, now=0.0)
    run(engine, until=0.1)
    used = engine.reading(0.1).kv_used_tokens
    engine.abort(1, now=0.1)
    assert engine.reading(0.1).kv_used_tokens == used
    (aborted,) = run(engine)
    assert aborted.kind is EngineEventKind.ABORTED
    assert 0.1 < aborted.at <= 0.11
    assert engine.reading(0.2).kv_used_tokens == 0


def test_a_zombie_works_on_for_clients_that_left() -> None:
    engine = SimulatedEngine(replace(CONFIG, notices_aborts=False))
    engine.submit(1, prompt_tokens=20, output_tokens=10, now=0.0)
    engine.abort(1, now=0.01)
    assert EngineEventKind.FINISHED in {event.kind for event in run(engine)}


def test_a_crash_loses_everything_and_refuses_connections_until_the_restart() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=20, output_tokens=100, now=0.0)
    engine.submit(2, prompt_tokens=20, output_tokens=100, now=0.0)
    engine.crash(0.05)
    events = run(engine, until=0.05)
    assert {event.id for event in events if event.kind is EngineEventKind.LOST} == {1, 2}
    assert not engine.submit(3, prompt_tokens=1, output_tokens=1, now=0.06)
    assert not engine.reading(0.06).ready
    engine.restart()
    assert engine.submit(3, prompt_tokens=1, output_tokens=1, now=0.07)
    assert times(run(engine), EngineEventKind.FINISHED)[3] == pytest.approx(0.07 + 11 * MS)


def test_a_hung_engine_accepts_requests_and_computes_nothing() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=10, output_tokens=5, now=0.0)
    engine.hang(0.005)
    assert engine.submit(2, prompt_tokens=10, output_tokens=1, now=1.0)
    assert engine.next_event_at() is None
    assert engine.advance(50.0) == []
    engine.resume(60.0)
    first = times(run(engine), EngineEventKind.FIRST_TOKEN)
    assert first[1] == pytest.approx(60.0 + 15 * MS)


def test_the_longest_gap_of_an_answer_holds_the_time_that_the_engine_hung() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=10, output_tokens=5, now=0.0)
    run(engine, until=0.025)
    engine.hang(0.025)
    engine.resume(3.025)
    (finished,) = run(engine)
    assert finished.worst_gap_s == pytest.approx(3.01)


def test_a_slow_engine_finishes_its_step_at_the_old_speed() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=10, output_tokens=2, now=0.0)
    engine.slow(3.0, now=0.001)
    assert times(run(engine), EngineEventKind.FINISHED)[1] == pytest.approx((20 + 30) * MS)


def test_a_prompt_that_leaves_no_room_for_output_is_refused() -> None:
    engine = SimulatedEngine(replace(CONFIG, context_tokens=100))
    engine.submit(1, prompt_tokens=100, output_tokens=1, now=0.0)
    assert [event.kind for event in run(engine)] == [EngineEventKind.TOO_LONG]


def test_an_answer_ends_where_the_context_ends() -> None:
    engine = SimulatedEngine(replace(CONFIG, context_tokens=100))
    engine.submit(1, prompt_tokens=90, output_tokens=500, now=0.0)
    (_, finished) = run(engine)
    assert finished.tokens == 10


def test_the_same_request_cannot_be_in_the_engine_twice() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=10, output_tokens=5, now=0.0)
    with pytest.raises(ValueError, match="already"):
        engine.submit(1, prompt_tokens=10, output_tokens=5, now=0.0)


def test_progress_of_a_running_request_can_be_asked_for() -> None:
    engine = SimulatedEngine(CONFIG)
    engine.submit(1, prompt_tokens=10, output_tokens=50, now=0.0)
    now = 0.0561
    assert engine.tokens(1, now) == 4
    assert engine.last_token_at(1, now) == pytest.approx(0.050)
    assert engine.tokens(2, now) == 0
    assert engine.last_token_at(2, now) == 0.0


@pytest.mark.parametrize(("kv_tokens", "max_sequences"), [(8, 4), (4096, 64), (4096, 0)])
def test_a_config_that_cannot_run_says_what_to_change(kv_tokens: int, max_sequences: int) -> None:
    with pytest.raises(ConfigError, match=r"must hold|raise chunk_tokens"):
        replace(CONFIG, kv_tokens=kv_tokens, max_sequences=max_sequences)


def test_costs_and_slow_factors_must_make_sense() -> None:
    with pytest.raises(ConfigError, match="takes time"):
        StepModel.from_ms(fixed=0.0, prefill=1.0, sequence=0.0, context=0.0)
    with pytest.raises(ConfigError, match="above 0"):
        COST.slowed(0.0)
