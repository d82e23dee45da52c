from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import ConfigError
from tidegate.lens.logline import log_line
from tidegate.lens.row import Row
from tidegate.plan.traffic import AZURE, MOONCAKE, REQUEST_LOG, USAGE, Traffic, read_traffic, whole_blocks
from tidegate.policy.outcomes import Outcome


def read(folder: Path, content: str) -> Traffic:
    path = folder / "file"
    path.write_text(content)
    return read_traffic(path)


def test_usage_lines_are_read_plain_and_nested(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '\n{"prompt_tokens": 10, "completion_tokens": 5}\n'
        '{"id": "x", "usage": {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}}\n'
        '{"prompt_tokens": 30, "output_tokens": 9, "outcome": "ok"}\n',
    )
    assert (found.form, found.requests, found.skipped) == (USAGE, ((10, 5), (20, 7), (30, 9)), 0)


def test_what_was_not_answered_is_skipped_and_counted(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '{"prompt_tokens": 10, "completion_tokens": 5}\n{"prompt_tokens": 10}\nnot json\n[1]\n'
        '{"prompt_tokens": 10, "completion_tokens": 0}\n{"prompt_tokens": -1, "completion_tokens": 3}\n'
        '{"prompt_tokens": 9, "output_tokens": 9, "outcome": "cut"}\n{"prompt_tokens": "a", "completion_tokens": 1}\n',
    )
    assert (found.requests, found.skipped) == (((10, 5),), 7)


def test_azure_traces_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n2023-11-16 18:17:04.03,3180,8\n",
    )
    assert (found.form, found.requests) == (AZURE, ((4808, 10), (3180, 8)))


def test_mooncake_traces_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n')
    assert (found.form, found.requests) == (MOONCAKE, ((6758, 500),))


def test_our_own_request_log_is_read(tmp_path: Path) -> None:
    def row(outcome: Outcome, output_tokens: int) -> Row:
        return Row(
            1, "id prompt_tokens=7", "/v1/completions", 200, "", 1.0, 2.0, 10, upstream="m",
            service_class="interactive", outcome=outcome, prompt_tokens=321, output_tokens=output_tokens,
        )  # fmt: skip

    lines = [log_line(each, 0.0) for each in (row(Outcome.OK, 45), row(Outcome.CUT, 44), row(Outcome.OK, 46))]
    found = read(tmp_path, "\n".join(["2026-11-29 Server ready.", *lines]))
    assert (found.form, found.requests, found.skipped) == (REQUEST_LOG, ((321, 45), (321, 46)), 2)


def test_the_planned_length_is_p99_times_1_2_in_whole_blocks() -> None:
    found = Traffic("x", USAGE, tuple((each, 24) for each in range(1, 1001)), 0)
    assert found.max_model_len(16) == 1232  # (990 + 24) × 1.2 = 1216.8
    assert (whole_blocks(1.0, 16), whole_blocks(16, 16), whole_blocks(16.1, 16)) == (16, 16, 32)


@pytest.mark.parametrize("content", ["", "hello\n", '{"a": 1}\n', "ContextTokens,GeneratedTokens\n"])
def test_a_file_without_lengths_is_told_what_can_be_read(content: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no answered request.*Known forms: the request log"):
        read(tmp_path, content)


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_traffic(tmp_path / "absent")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text"):
        read_traffic(binary)
