from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.engines.vllm.stand_ins import Log, SlidingWindowManager, keeps, request, scheduler
from tidegate.engines.vllm.carried import taken
from tidegate.engines.vllm.reservation import Reservation
from tidegate.engines.vllm.reserver import TELL_EVERY_S, Reserver


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def attached(engine: Any, clock: Clock | None = None, **rules: Any) -> tuple[Reserver, Log]:
    log = Log()
    return Reserver(engine, Reservation(**rules), log, clock or Clock()), log


def begun(engine: Any, reserver: Reserver, one: Any) -> None:
    """vLLM's half of a step in which it starts."""
    reserver.open_step()
    assert reserver.admits(one)
    one.status = SimpleNamespace(name="RUNNING")
    engine.running.append(one)
    engine.requests[one.request_id] = one
    reserver.close_step()


def ended(engine: Any, reserver: Reserver, one: Any, how: str = "FINISHED_STOPPED") -> None:
    engine.running.remove(one)
    del engine.requests[one.request_id]
    one.status = SimpleNamespace(name=how)
    reserver.freed(one)
    reserver.ended(one)


def test_it_says_at_the_start_what_it_reserves() -> None:
    assert "Tidegate reserves KV" in attached(scheduler())[1].lines[0]


def test_a_request_that_met_another_limit_has_no_seat() -> None:
    engine = scheduler()
    reserver, _ = attached(engine)
    reserver.open_step()
    one = request("a")
    assert reserver.admits(one)
    reserver.close_step()
    assert reserver.ledger.seated == {}


def test_one_that_holds_blocks_keeps_its_seat() -> None:
    engine = scheduler()
    reserver, _ = attached(engine, rule="worst_case")
    one = request("session")
    begun(engine, reserver, one)
    assert reserver.admits(one)
    assert list(reserver.ledger.seated) == ["session"]


def test_tokens_in_flight_count_as_written() -> None:
    reserver, _ = attached(scheduler())
    claim = reserver.claim(request("a", num_tokens=110, num_output_tokens=10, num_output_placeholders=2))
    assert (claim.tokens, claim.output_tokens) == (112, 12)


def test_a_client_is_held_to_what_it_declared_and_never_to_less_than_it_may_get() -> None:
    reserver, _ = attached(scheduler())

    def most(name: str, declared: object, **more: Any) -> int:
        arguments = SimpleNamespace(extra_args={"tidegate_max_tokens": declared})
        return reserver.claim(request(name, sampling_params=arguments, **more)).most_output_tokens

    assert most("more", 500) == 500
    assert most("less", 50) == 200
    assert most("nonsense", "many") == 200
    assert most("context", 5000) == 1024 - 100
    assert reserver.claim(request("embedding", sampling_params=None, max_tokens=1)).most_output_tokens == 1


def test_blocks_that_a_window_has_passed_are_not_held() -> None:
    window = keeps(SlidingWindowManager, most_blocks=3)
    engine = scheduler(keeps(), window)
    reserver, _ = attached(engine)
    block, null = SimpleNamespace(is_null=False), SimpleNamespace(is_null=True)
    engine.kv_cache_manager.coordinator.single_type_managers[0].req_to_blocks["a"] = [block] * 4
    window.req_to_blocks["a"] = [null, null, block, block]
    assert reserver.claim(request("a")).held_blocks == 6


def short_of_a_block(policy: str) -> dict[str, int]:
    """Two that both need the last block; when each may decode again."""
    engine = scheduler(policy=SimpleNamespace(name=policy))
    reserver, _ = attached(engine, lengths="learned")
    for _ in range(20):
        reserver.ledger.lengths.record(200, 1)
    for name, priority in (("first", 1), ("second", 0)):
        begun(engine, reserver, request(name, priority=priority))
    table = engine.kv_cache_manager.coordinator.single_type_managers[0].req_to_blocks
    for one in engine.running:
        table[one.request_id] = [SimpleNamespace(is_null=False)] * 4
        one.num_tokens, one.num_output_tokens = 129, 29
    engine.kv_cache_manager.block_pool.get_num_free_blocks = lambda: 1
    reserver.open_step()
    return {one.request_id: one.next_decode_eligible_step for one in engine.running}


def test_the_younger_one_skips_exactly_the_coming_step() -> None:
    assert short_of_a_block("FCFS") == {"first": 0, "second": 2}


def test_where_classes_are_sent_the_less_urgent_one_waits() -> None:
    assert short_of_a_block("PRIORITY") == {"first": 2, "second": 0}


def test_answers_that_ended_by_themselves_are_learned_and_saved_at_the_end(tmp_path: Path) -> None:
    engine = scheduler()
    path = tmp_path / "lengths.json"
    reserver, _ = attached(engine, lengths="learned", history_file=str(path))
    for index, how in enumerate(("FINISHED_STOPPED", "FINISHED_LENGTH_CAPPED", "FINISHED_ABORTED")):
        one = request(str(index), num_output_tokens=50)
        begun(engine, reserver, one)
        ended(engine, reserver, one, how)
    assert len(reserver.ledger.lengths) == 2
    reserver.close()
    again, _ = attached(engine, lengths="learned", history_file=str(path))
    assert len(again.ledger.lengths) == 2


def test_a_history_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lengths.json"
    path.write_text("{")
    engine = scheduler()
    reserver, log = attached(engine, lengths="learned", history_file=str(path))
    assert "learned anew" in log.lines[-1]
    path.unlink()
    path.mkdir()
    reserver.close()
    assert "cannot be written" in log.lines[-1]


def test_a_preempted_request_is_known_as_one_when_it_comes_again() -> None:
    engine = scheduler()
    reserver, _ = attached(engine)
    one = request("a")
    begun(engine, reserver, one)
    engine.running.remove(one)
    reserver.preempted(one)
    reserver.freed(one)
    assert reserver.claim(one).is_preempted
    begun(engine, reserver, one)
    assert not reserver.claim(one).is_preempted
    assert reserver.figures().preemptions == 1


def test_the_figures_travel_now_and_then_and_at_once_when_it_falls_idle() -> None:
    engine, clock = scheduler(), Clock()
    reserver, _ = attached(engine, clock)

    def told() -> dict[str, int] | None:
        stats = SimpleNamespace(num_kv_fetch_reqs_by_stage={})
        reserver.tell(stats)
        return taken(stats.num_kv_fetch_reqs_by_stage)

    one = request("a")
    begun(engine, reserver, one)
    first = told()
    assert first is not None
    assert first["reserved_blocks"] == 10
    assert told() is None
    clock.now += TELL_EVERY_S
    assert told() is not None
    ended(engine, reserver, one)
    last = told()
    assert last is not None
    assert last["reserved_blocks"] == 0


def test_the_figures_stand_in_the_log_every_so_many_steps() -> None:
    engine = scheduler(current_step=2000)
    reserver, log = attached(engine, log_every_steps=1000)
    reserver.open_step()
    reserver.close_step()
    assert "pool_blocks=80" in log.lines[-1]
