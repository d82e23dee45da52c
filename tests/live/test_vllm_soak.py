"""Ten minutes of random load with aborts on a real vLLM behind Tidegate: nothing leaks, nothing grows, the books agree.

``TIDEGATE_SOAK_S`` shortens or lengthens it. Load stops once a minute; what is held must then be nothing, in our
ledger, in the scheduler's and in vLLM's own pool.
"""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.vllm_runs import place, server
from tests.live.running import Exchange, until
from tests.live.vllm_serving import Protected, asked, figures, post, protected, session_of, story, title_of

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.skipif(not place.is_there(), reason=place.MISSING),
]

SOAK_S = float(os.environ.get("TIDEGATE_SOAK_S", "600"))
ROUND_S = 60.0
CLIENTS = 12
CORE, WORKER = "VLLM::EngineCore", "VLLM::Worker"
MOST_GROWTH = 1.01
MOST_OVER_BARE = 1.12
BLOCK_TOKENS = 32
WORDS = ("the", "of", "and", "to", "in", "is", "it", "on", "as", "at", "by", "we", "he", "or", "an")


def memory_bytes(engine: server.Server) -> dict[str, int]:
    """Of the server's processes by title, each page divided by those who share it."""
    found: dict[str, int] = {}
    for pid in session_of(engine.process):
        title = title_of(pid).split(" ")[0]
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        held = sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024
        found[title] = found.get(title, 0) + held
    return found


@dataclass
class Clients:
    """Threads that ask, read, and sometimes leave, until they are told to rest."""

    url: str
    outcomes: Counter[str] = field(default_factory=Counter)

    def work(self, seconds: float, seed: int) -> None:
        until_s = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._one, args=(random.Random(f"{seed}/{k}"), until_s)) for k in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _one(self, rng: random.Random, until_s: float) -> None:
        while time.monotonic() < until_s:
            self.outcomes[self._request(rng)] += 1

    def _request(self, rng: random.Random) -> str:
        if rng.random() < 0.05:
            return str(post(self.url, asked("7 " * 1500)).status)
        words = " ".join(rng.choices(WORDS, k=rng.randint(1, 400)))
        body = asked(words, max_tokens=rng.randint(8, 160), ignore_eos=True, stream=True)
        exchange = Exchange(self.url, body)
        if rng.random() < 0.3:
            exchange.socket.settimeout(rng.uniform(0.05, 4.0))
            # It may leave before anything came, or after all of it.
            with suppress(TimeoutError, AssertionError):
                exchange.read_events(rng.randint(1, 60))
            exchange.leave()
            return "left"
        seen = exchange.read_all()
        return "whole" if b"[DONE]" in seen else seen.split(b" ", 2)[1].decode()


def held_by_vllm(engine: server.Server) -> dict[str, float]:
    """What runs, waits or holds blocks, by vLLM's own word and by the scheduler's."""
    counts = engine.metrics()
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    kept = ("tidegate_kv_held_blocks", "tidegate_kv_reserved_blocks", "tidegate_kv_leaked")
    return {name: counts[name] for name in names} | {name: figures(engine)[name] for name in kept}


def is_at_rest(both: Protected) -> bool:
    return both.service.is_idle() and not any(held_by_vllm(both.engine).values())


def soak(url: str, rest: Callable[[], None], engine: server.Server) -> tuple[Counter[str], list[dict[str, int]]]:
    """Outcomes, and the engine's memory at each rest."""
    clients = Clients(url)
    memory: list[dict[str, int]] = []
    began = time.monotonic()
    while time.monotonic() - began < SOAK_S:
        clients.work(min(ROUND_S, SOAK_S / 4), seed=len(memory))
        rest()
        memory.append(memory_bytes(engine))
    return clients.outcomes, memory


def test_nothing_leaks_or_grows_and_the_books_agree_at_every_rest(tmp_path: Path) -> None:
    with protected(tmp_path) as both:
        # The first requests compile and fill caches; that is no growth.
        Clients(both.service.url).work(min(ROUND_S, SOAK_S / 4), seed=-1)
        outcomes, memory = soak(both.service.url, lambda: _rest(both), both.engine)
        view = both.service.view()
        assert view["permit_leaks"] == 0
        assert both.engine.metrics()["vllm:num_preemptions_total"] == 0
        core, worker = ([round(each[name] / 2**20) for each in memory] for name in (CORE, WORKER))
        print(f"outcomes {dict(outcomes)}; MiB: scheduler {core}, worker {worker}")  # noqa: T201  # figures for whoever runs it with -s
    assert both.engine.log.read_text().count("out of memory") == 0
    assert outcomes["whole"] > 20
    assert outcomes["left"] > 10
    assert outcomes["400"] > 1
    # 504: on a machine that stalls for longer than the first byte took so far.
    assert not outcomes.keys() - {"whole", "left", "400", "429", "503", "504"}
    half = len(memory) // 2
    # The ledger lives in the scheduler's process. The worker of a CPU build keeps kernels for every shape that it met,
    # and grows by some 60 MiB a minute of such traffic without any ledger too.
    assert statistics.median(core[half:]) <= MOST_GROWTH * statistics.median(core[: half or 1])


def _rest(both: Protected) -> None:
    until(lambda: is_at_rest(both), 60, every_s=0.5)


def test_memory_stays_near_that_of_a_bare_engine_under_the_same_load(tmp_path: Path) -> None:
    def peak(url: str, engine: server.Server) -> int:
        peaks, clients = [], Clients(url)
        for seed in range(3):
            clients.work(min(20.0, SOAK_S / 8), seed)
            peaks.append(sum(memory_bytes(engine).values()))
        return max(peaks)

    with server.server(str(place.python()), str(place.model()), tmp_path / "bare.log") as bare:
        without = peak(bare.url, bare)
    with protected(tmp_path) as both:
        with_reservation = peak(both.service.url, both.engine)
    print(f"peak {without / 2**20:.0f} MiB bare, {with_reservation / 2**20:.0f} MiB with reservation")  # noqa: T201  # figures for whoever runs it with -s
    assert with_reservation <= MOST_OVER_BARE * without


def test_two_ledgers_and_the_engine_agree_within_a_block_per_request_while_streams_run(tmp_path: Path) -> None:
    with protected(tmp_path, rule="worst_case", slot_tokens=BLOCK_TOKENS) as both:
        post(both.service.url, story(0, 4))
        streams = [Exchange(both.service.url, story(index, 400, stream=True)) for index in range(4)]
        for stream in streams:
            stream.read_events(4)
        until(lambda: figures(both.engine)["tidegate_kv_reserved_blocks"] > 0, 10)
        theirs, ours = figures(both.engine), both.service.replica()["slots"]
        assert abs(ours["used"] + ours["reserved"] - theirs["tidegate_kv_reserved_blocks"]) <= len(streams)
        # The scheduler's figures travel with vLLM's own, a moment later than the gauge of its pool.
        until(lambda: abs(_blocks_in_use(both) - figures(both.engine)["tidegate_kv_held_blocks"]) <= len(streams), 10)
        for stream in streams:
            stream.leave()
        _rest(both)


def _blocks_in_use(both: Protected) -> int:
    """By vLLM's own gauge of its pool."""
    return round(both.engine.metrics()["vllm:kv_cache_usage_perc"] * figures(both.engine)["tidegate_kv_pool_blocks"])
