"""Where vLLM is: an environment of its own, made by ``make vllm``, or another named by TIDEGATE_VLLM."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MISSING = "no vLLM here: make vllm installs its CPU build (2 GB), or TIDEGATE_VLLM names an environment that has it"


def environment() -> Path:
    return Path(os.environ.get("TIDEGATE_VLLM", ROOT / ".venv-vllm"))


def python() -> Path:
    return environment() / "bin" / "python"


def model() -> Path:
    """The demo model, converted for vLLM."""
    return environment() / "model"


def is_there() -> bool:
    """The environment is complete, not just begun."""
    return python().exists() and (model() / "config.json").exists()


class Steps:
    """A process in vLLM's environment that answers questions to its scheduler (``stepping.py``)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **question: Any) -> dict[str, Any]:
        """Raises RuntimeError if the process ended over it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the stepped scheduler ended with {self._process.wait(30)} over {question}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def steps() -> Iterator[Steps]:
    command = [str(python()), str(ROOT / "bench" / "vllm_runs" / "stepping.py")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=ROOT
    )
    try:
        yield Steps(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
