"""Lines as vLLM 0.32 writes them (its CPU build, started wrongly on purpose)."""

from __future__ import annotations

import pytest

from tidegate.engines.vllm.ending import LONGEST_CAUSE, cause_in, in_words, is_mistake

AFTERWARDS = [
    "(EngineCore pid=7) Exception: WorkerProc initialization failed due to an exception in a background process.",
    "    raise RuntimeError(",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
]
FULL = "(VllmWorker-0 pid=9) ERROR 11-29 19:39:14 [multiproc_executor.py:953] ValueError: Available memory is less"
TOO_LONG = [
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
    "  Value error, User-specified max_model_len (99999) is greater than the derived max_model_len",
]


@pytest.mark.parametrize(
    ("lines", "status", "cause", "is_ours"),
    [
        ([FULL, *AFTERWARDS], 1, "ValueError: Available memory is less", False),
        (["api_server.py: error: unrecognized arguments: --x"], 2, "error: unrecognized arguments: --x", True),
        (TOO_LONG, 1, f"ValidationError: 1 validation error for ModelConfig {TOO_LONG[1].strip()}", True),
        (["ModuleNotFoundError: No module named 'vllm'"], 1, "ModuleNotFoundError: No module named 'vllm'", True),
        (["(APIServer pid=7) WARNING 11-29 such as `OSError: [Errno 24] Too many open files`"], 1, "", False),
        (AFTERWARDS[2:], 1, AFTERWARDS[2].strip(), False),
        (["a line", "another"], -9, "", False),
    ],
)
def test_the_first_hand_error_is_the_cause(lines: list[str], status: int, cause: str, is_ours: bool) -> None:
    assert cause_in(lines) == cause
    assert is_mistake(status, cause) is is_ours


def test_a_cause_is_a_line_and_not_a_page() -> None:
    assert len(cause_in([f"ValueError: {'x' * 5000}"])) == LONGEST_CAUSE


def test_a_status_of_zero_is_an_end_like_any() -> None:
    assert in_words(0, "", was_ready=True) == "vLLM ended with status 0 while it served"
    assert in_words(-9, "E: x", was_ready=False) == "vLLM was killed by SIGKILL during its start: E: x"
