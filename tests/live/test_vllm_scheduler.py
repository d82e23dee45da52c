"""vLLM's own scheduler with the plugin and a model that is not there: exact in steps, whatever the machine does."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from bench.vllm_runs import place
from bench.vllm_runs.place import Steps
from bench.vllm_runs.rows import GUARANTEED, LEARNED, NATIVE, PEAK, PLUGIN, WORST_CASE, Row

pytestmark = [pytest.mark.live, pytest.mark.skipif(not place.is_there(), reason=place.MISSING)]

SEEDS = (61, 62, 63)
"""None of them is one on which the settings were chosen."""
REQUESTS = 160
ASYNC_PLUGIN = PLUGIN.replace(".Reserving", ".AsyncReserving")


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    with place.steps() as started:
        yield started


class Compared:
    """Runs are made once; each row on the same loads as native."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._runs: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def runs(self, row: Row, kind: str) -> list[dict[str, Any]]:
        key = (row.name, kind)
        if key not in self._runs:
            loads = [{"kind": kind, "count": REQUESTS, "seed": seed} for seed in SEEDS]
            self._runs[key] = [self._steps.ask(engine=row.engine, load=load, warm=row.warm) for load in loads]
        return self._runs[key]

    def steps_ratio(self, row: Row, kind: str) -> float:
        pairs = zip(self.runs(row, kind), self.runs(NATIVE, kind), strict=True)
        return statistics.mean(float(run["steps"]) / float(native["steps"]) for run, native in pairs)

    def total(self, row: Row, kind: str, name: str) -> int:
        return sum(run[name] for run in self.runs(row, kind))

    def gap(self, row: Row, kind: str) -> float:
        """P95 of the longest silence in a stream, in steps; the worst seed."""
        return float(max(run["gap_steps"]["p95"] for run in self.runs(row, kind)))

    def native_gap(self, kind: str) -> float:
        return float(min(run["gap_steps"]["p95"] for run in self.runs(NATIVE, kind)))


@pytest.fixture(scope="module")
def compared(steps: Steps) -> Compared:
    return Compared(steps)


@pytest.mark.parametrize("kind", ["exact", "early"])
def test_native_vllm_preempts_and_its_streams_stop(compared: Compared, kind: str) -> None:
    assert compared.total(NATIVE, kind, "preempted") > 0.2 * REQUESTS * len(SEEDS)
    assert compared.native_gap(kind) >= 10


@pytest.mark.parametrize("kind", ["exact", "early"])
def test_the_worst_case_is_never_preempted_and_no_stream_stops(compared: Compared, kind: str) -> None:
    assert compared.total(WORST_CASE, kind, "preemptions") == 0
    assert compared.gap(WORST_CASE, kind) * 5 <= compared.native_gap(kind)


def test_with_exact_lengths_the_peak_test_costs_a_twentieth_and_nothing_is_preempted(compared: Compared) -> None:
    assert compared.total(PEAK, "exact", "preemptions") == 0
    assert compared.steps_ratio(PEAK, "exact") <= 1.05
    assert compared.gap(PEAK, "exact") * 5 <= compared.native_gap("exact")


def test_with_learned_lengths_it_costs_a_tenth_and_one_in_fifty_is_preempted(compared: Compared) -> None:
    assert compared.total(LEARNED, "early", "preempted") <= 0.02 * REQUESTS * len(SEEDS)
    assert compared.steps_ratio(LEARNED, "early") <= 1.10
    assert compared.gap(LEARNED, "early") * 5 <= compared.native_gap("early")


def test_with_the_bankers_check_learned_lengths_preempt_nobody(compared: Compared) -> None:
    assert compared.total(GUARANTEED, "early", "preemptions") == 0
    assert compared.steps_ratio(GUARANTEED, "early") < compared.steps_ratio(WORST_CASE, "early")


RULES: dict[str, dict[str, Any]] = {
    "worst_case": {"rule": "worst_case"},
    "peak": {},
    "guaranteed": {"lengths": "learned", "guaranteed": True},
    "learned": {"lengths": "learned"},
}
KEPT = ("worst_case", "peak", "guaranteed")
"""Those that promise that nobody is preempted."""

VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clients that hang up": ({}, {"abort_every": 7}),
    "shared prompts": ({}, {"shared_tokens": 256}),
    "asynchronous": ({"asynchronous": True, "scheduler": ASYNC_PLUGIN}, {}),
    "asynchronous, clients that hang up": ({"asynchronous": True, "scheduler": ASYNC_PLUGIN}, {"abort_every": 7}),
    "speculation": ({"draft_tokens": 3}, {}),
    "a sliding window": ({"window_tokens": 128, "blocks": 120}, {}),
    "priorities": ({"policy": "priority"}, {}),
    "no prefix caching": ({"prefix_caching": False}, {}),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_promise_holds_and_nothing_leaks(steps: Steps, variant: str, rule: str) -> None:
    changed, load = VARIANTS[variant]
    engine = {"scheduler": PLUGIN, "tidegate": RULES[rule], **changed}
    run = steps.ask(engine=engine, load={"kind": "mixed", "count": 64, "seed": 71, **load})
    pool_blocks = changed.get("blocks", 80)
    assert run["free_blocks"] == pool_blocks
    ledger = run["ledger"]
    assert (ledger["leaked"], ledger["held_blocks"], ledger["reserved_blocks"]) == (0, 0, 0)
    assert ledger["peak_reserved_blocks"] <= pool_blocks
    # No block is taken that no claim explains, in any step.
    assert run["unclaimed_blocks"] <= 0
    assert ledger["preemptions"] == run["preemptions"] or "abort_every" in load
    if rule in KEPT:
        assert ledger["preemptions"] == 0


def test_urgent_requests_begin_before_the_others(steps: Steps) -> None:
    engine = {"scheduler": PLUGIN, "tidegate": {}, "policy": "priority"}
    run = steps.ask(engine=engine, load={"kind": "exact", "count": REQUESTS, "seed": 71})
    assert run["urgent_ttft_steps"]["p95"] * 2 <= run["ttft_steps"]["p95"]


def start_of(**question: Any) -> subprocess.CompletedProcess[str]:
    """One question to a scheduler of its own, with what it says on standard error."""
    command = [str(place.python()), str(place.ROOT / "bench" / "vllm_runs" / "stepping.py")]
    env = {**os.environ, "PYTHONPATH": str(place.ROOT / "src"), "VLLM_LOGGING_LEVEL": "ERROR"}
    load = {"kind": "exact", "count": 4, "seed": 1}
    asked = json.dumps({"load": load, **question})
    return subprocess.run(command, input=asked, capture_output=True, text=True, env=env, check=False, timeout=300)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"engine": {"scheduler": PLUGIN, "tidegate": {"rules": "peak"}}}, "tidegate: unknown key 'rules'"),
        ({"engine": {"scheduler": PLUGIN}, "version": "0.99.0"}, "was not tested with vLLM 0.99.0"),
    ],
)
def test_what_it_cannot_do_stops_vllm_at_its_start_in_words(question: dict[str, Any], words: str) -> None:
    ended = start_of(**question)
    assert ended.returncode != 0
    assert words in ended.stderr


def test_an_untested_vllm_schedules_as_it_does_where_that_is_asked_for() -> None:
    ended = start_of(engine={"scheduler": PLUGIN, "tidegate": {"unknown_version": "native"}}, version="0.99.0")
    assert ended.returncode == 0, ended.stderr
    assert "NOTHING IS RESERVED IN THIS ENGINE" in ended.stdout + ended.stderr
    assert "ledger" not in json.loads(ended.stdout.splitlines()[-1])


def test_learned_lengths_outlive_a_restart(steps: Steps, tmp_path: Any) -> None:
    tidegate = {"lengths": "learned", "history_file": str(tmp_path / "lengths.json")}
    engine = {"scheduler": PLUGIN, "tidegate": tidegate}
    load = {"kind": "early", "count": REQUESTS, "seed": 71}
    cold = steps.ask(engine=engine, load={**load, "seed": 72})
    assert (tmp_path / "lengths.json").exists()
    restarted = steps.ask(engine=engine, load=load)
    native = steps.ask(load=load)
    assert cold["requests"] == restarted["requests"] == REQUESTS
    assert restarted["steps"] / native["steps"] <= 1.12
