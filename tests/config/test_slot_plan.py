from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import settings_of
from tidegate.config import slot_plans
from tidegate.config.slot_plan import SlotPlan, allocation_lines, fitted, ready_line, weights_line
from tidegate.errors import ConfigError

QWEN2_7B = 57_344
"""Bytes per token, FP16: 2 × 28 layers × 4 KV heads × 128 × 2 (SPEC Appendix C)."""


def plan_of(folder: Path, keys: str, rest: str = "") -> SlotPlan:
    yaml = f"upstreams: {{chat: {{replicas: [{{url: http://h:1, {keys}}}]}}}}\n{rest}"
    return next(iter(slot_plans(settings_of(folder, yaml))))


def test_the_sources_own_rule_gives_96_slots_of_which_76_are_recommended(tmp_path: Path) -> None:
    keys = f"kv_pool_bytes: 24GiB, bytes_per_token: {QWEN2_7B}, slot_size_mib: 256, sequences: 256"
    plan = plan_of(tmp_path, keys)
    assert (plan.slots, plan.recommended_sequences, plan.sequences) == (96, 76, 96)
    assert fitted(plan, "clamp") == [
        "256 sequences asked of chat-0, which has 96 slots: at most 96 run beside each other (recommended: 76)"
    ]
    with pytest.raises(ConfigError, match="256 sequences asked"):
        fitted(plan, "fail")
    assert allocation_lines(plan) == [
        "Pre-allocating 96 memory slots (256MB each) → total 24.0GB",
        "Slot allocation completed. Free slots: 96/96",
    ]


def test_after_weights_an_a10_holds_20_slots(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"kv_pool_bytes: 5178MiB, bytes_per_token: {QWEN2_7B}, slot_size_mib: 256")
    assert (plan.slots, plan.recommended_sequences, plan.sequences) == (20, 16, None)
    assert fitted(plan, "fail") == []


def test_the_size_for_all_replicas_comes_from_the_section(tmp_path: Path) -> None:
    keys = f"kv_pool_bytes: 24GiB, bytes_per_token: {QWEN2_7B}"
    assert plan_of(tmp_path, keys, "slots: {slot_size_mib: 256}").slots == 96
    assert plan_of(tmp_path, f"{keys}, slot_tokens: 512", "slots: {slot_size_mib: 256}").slot_tokens == 512


def test_a_size_in_bytes_has_no_effect_where_tokens_have_none(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "kv_tokens: 2560", "slots: {slot_size_mib: 256}")
    assert (plan.slot_tokens, plan.slots) == (256, 10)
    (warning,) = fitted(plan, "fail")
    assert warning.startswith("slots.slot_size_mib: 256 has no effect on chat-0")


def test_what_the_engine_tells_completes_the_plan_and_the_file_goes_first(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "sequences: 64")
    assert (plan.slots, plan.recommended_sequences, plan.is_overcommitted) == (None, None, False)
    assert allocation_lines(plan) == [
        "Slots of chat-0: unknown until the engine tells its KV pool; the adaptive limit protects it"
    ]
    told = plan.told(8192, 256, 4096)
    assert (told.slots, told.sequences, told.context_tokens) == (32, 32, 4096)
    assert told.capacity().slots == 32
    assert plan.told(None, None, None) == plan


def test_a_started_engine_has_one_slot_for_each_sequence(tmp_path: Path) -> None:
    (plan,) = slot_plans(settings_of(tmp_path, "upstreams: {s: {engine: {sequences: 3, context_tokens: 1000}}}"))
    assert (plan.replica, plan.slots, plan.sequences, plan.slot_tokens) == ("s-embedded", 3, 3, 1000)
    assert allocation_lines(plan)[0] == "Pre-allocating 3 memory slots (1000 tokens each) → total 3000 tokens"


def test_the_other_start_lines_tell_true_figures() -> None:
    assert weights_line(3 * 2**29) == "Weights loaded. Memory usage: 1.5GB"
    assert weights_line(None) == "Weights loaded. Memory usage: not reported"
    assert ready_line(95, 96) == "Server ready. Free slots: 95/96"
    assert ready_line(None, None) == "Server ready. Free slots: unknown"
