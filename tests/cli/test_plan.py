from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import run
from tests.plan.gguf_files import EMBEDDING, LLAMA, gguf, write
from tidegate.plan import memory_report, slot_sizes
from tidegate.plan.known_models import CONFIGS


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    rows = "\n".join(f"2023-11-16 18:17:0{each % 10},{100 * each},{10 * each}" for each in range(1, 41))
    path.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}\n")
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    ended = run(capsys, "plan", *arguments, "--json")
    assert ended.status == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    ended = run(capsys, "plan", *arguments)
    assert (ended.status, ended.out) == (1, "")
    return ended.err


def test_memory_as_json_is_one_object_with_the_fields_of_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "memory", "qwen2-7b", "--gpu", "A10", "--utilization", "0.9", "--context", "4096")
    assert found.keys() == {name.partition(".")[0].removesuffix("[]") for name in memory_report.SCHEMA}
    assert (found["fits"], found["slots"]["slots"], found["kv"]["bytes_per_token"]) == (True, 20, 57_344)


@pytest.mark.parametrize(("command", "schema"), [("memory", memory_report.SCHEMA), ("slots", slot_sizes.SCHEMA)])
def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str], command: str, schema: dict[str, str]) -> None:
    assert json.loads(run(capsys, "plan", command, "--schema").out)["fields"] == schema


def test_every_option_reaches_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(
        capsys, "memory", "llama-3-8b", "--gpu", "81920", "--tp", "2", "--pp", "2", "--count", "4", "--context", "2048",
        "--context", "1024", "--utilization", "0.5", "--kv-dtype", "fp8", "--weight-dtype", "awq", "--slot-mib", "128",
        "--max-num-seqs", "7", "--max-num-batched-tokens", "512", "--block-tokens", "32", "--activations-mib", "300",
        "--context-mib", "900",
    )  # fmt: skip
    assert found["serving"] == {
        "tensor_parallel": 2,
        "pipeline_parallel": 2,
        "utilization": 0.5,
        "kv_dtype": "fp8",
        "max_num_batched_tokens": 512,
        "block_tokens": 32,
    }
    assert (found["memory"]["activations"], found["memory"]["context"]) == (300, 900)
    assert (found["slots"]["slot_mib"], found["slots"]["max_num_seqs"], found["max_model_len"]) == (128, 7, 2048)
    assert (found["model"]["weight_format"], found["gpu"]["count"]) == ("awq", 4)


def test_a_gguf_file_is_planned_for_llama_cpp(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path, gguf(LLAMA, [EMBEDDING]))
    assert told(capsys, "memory", str(path), "--gpu", "T4")["engine"] == "llama.cpp"


def test_a_gguf_file_that_does_not_fit_is_not_told_to_change_its_weights(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ended = run(capsys, "plan", "memory", str(write(tmp_path, gguf(LLAMA, [EMBEDDING]))), "--gpu", "500", "--json")
    remedies = json.loads(ended.out)["remedies"]
    assert ended.status == 1
    assert [each.split(":")[0] for each in remedies] == ["a larger GPU"]


def test_weights_of_a_known_size_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "memory", "llama-3-8b", "--gpu", "A10", "--weights-gib", "4")
    assert (found["memory"]["weights"], found["model"]["weight_format"]) == (4096, "as given")


def test_more_sequences_than_slots_are_clamped_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("memory", "qwen2-7b", "--gpu", "A10", "--max-num-seqs", "256")
    assert told(capsys, *asked)["slots"]["max_num_seqs"] == 16
    assert "--overcommit fail: 256 sequences asked, 16 slots" in complaint(capsys, *asked, "--overcommit", "fail")
    assert told(capsys, *asked[:-1], "16", "--overcommit", "fail")["warnings"] == []


def test_what_does_not_fit_ends_with_1_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "plan", "memory", "llama-3-70b", "--gpu", "A10")
    assert ended.status == 1
    assert "DOES NOT FIT: llama-3-70b does not fit" in ended.out
    assert "--tensor-parallel-size 8: 8 GPUs hold" in ended.out
    as_json = run(capsys, "plan", "memory", "llama-3-70b", "--gpu", "A10", "--json")
    assert (as_json.status, json.loads(as_json.out)["fits"]) == (1, False)


def test_the_fewest_gpus_at_hand_are_planned_with(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "memory", "llama-3-70b", "--gpu", "A100-80", "--count", "8")
    assert found["serving"]["tensor_parallel"] == 2


def test_the_length_comes_from_the_traffic(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    found = told(capsys, "memory", "llama-3-8b", "--gpu", "A10", "--from-trace", str(trace))
    assert (found["max_model_len"], found["max_model_len_from"]) == (5280, "P99 × 1.2")


@pytest.mark.parametrize("model", ["qwen2-7b", "gemma-2-9b", "deepseek-v2-lite", "mixtral-8x7b"])
def test_the_table_fits_80_columns_and_begins_with_the_model(capsys: pytest.CaptureFixture[str], model: str) -> None:
    out = run(capsys, "plan", "memory", model, "--gpu", "H200", "--max-num-seqs", "9999").out
    rows = [line for line in out.splitlines() if "│" in line or "┃" in line]
    assert out.startswith(model)
    assert max(map(len, rows)) <= 80
    for expected in ("weights", "activations", "context", "kv pool", "slots of 256 MiB", "WARN 9999", "vLLM: --gpu"):
        assert expected in out
    assert ("MLA" in out) == model.startswith("deepseek")
    assert ("window" in out) == model.startswith("gemma")
    assert ("active" in out) == (model[0] in "dm")


def test_slots_as_json_are_one_object_with_the_fields_of_the_schema(
    capsys: pytest.CaptureFixture[str], trace: Path
) -> None:
    found = told(capsys, "slots", "--from-trace", str(trace), "--model", "qwen2-7b", "--gpu", "A10")
    assert found.keys() == {name.removesuffix("[]") for name in slot_sizes.SCHEMA}
    assert (found["requests"], found["lengths"]["total"]["p95"], found["slot_tokens"]) == (40, 4180, 5024)
    assert found["slot_mib"] == pytest.approx(5024 * 57_344 / 2**20)


def test_slots_are_shown_with_and_without_a_gpu(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    alone = run(capsys, "plan", "slots", "--from-trace", str(trace)).out
    assert "5024 *" in alone
    assert "at once" not in alone
    placed = run(capsys, "plan", "slots", "--from-log", str(trace), "--model", "qwen2-7b", "--gpu", "A10").out
    assert "at once" in placed
    assert "--max-num-seqs" in placed
    assert max(len(line) for line in placed.splitlines() if "│" in line) <= 80


def test_skipped_lines_are_told_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    path.write_text('{"prompt_tokens": 5, "completion_tokens": 5}\n{"prompt_tokens": 5}\n')
    assert "usage JSON lines, lines skipped: 1" in run(capsys, "plan", "slots", "--from-log", str(path)).out


def test_mistakes_are_told_in_one_line(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    assert "MODEL is missing" in complaint(capsys, "memory", "--gpu", "A10")
    assert all(name in complaint(capsys, "memory") for name in CONFIGS)
    assert "--gpu is missing" in complaint(capsys, "memory", "qwen2-7b")
    assert "did you mean qwen3-8b?" in complaint(capsys, "memory", "qwen9", "--gpu", "A10")
    assert "--tp: 3 does not divide" in complaint(capsys, "memory", "qwen2-7b", "--gpu", "A10", "--tp", "3")
    assert "--from-log FILE or --from-trace FILE" in complaint(capsys, "slots")
    assert "give one of them" in complaint(capsys, "slots", "--from-log", str(trace), "--from-trace", str(trace))
    assert "belong together" in complaint(capsys, "slots", "--from-log", str(trace), "--gpu", "A10")


def test_no_command_is_help_and_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "plan")
    assert ended.status == 2
    assert "memory" in ended.out + ended.err
