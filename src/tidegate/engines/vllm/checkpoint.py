"""What has to be known of a checkpoint and of the vLLM that will serve it, before it starts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tidegate.errors import EngineError

FIND_VERSION = """
import importlib.util, pathlib, runpy
found = importlib.util.find_spec("vllm")
print(runpy.run_path(str(pathlib.Path(found.submodule_search_locations[0], "_version.py")))["version"])
"""
"""Without importing vLLM, which takes seconds; and not from the package's metadata, which CPU builds have under
another name."""

FIND_TIDEGATE = """
import importlib.util, sys
sys.exit(importlib.util.find_spec("tidegate") is None)
"""


def dtype_of(folder: str) -> str:
    """What the weights are stored as. Raises EngineError with what to do."""
    path = Path(folder) / "config.json"
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be read ({error}); give the checkpoint's folder, or its dtype") from error
    for part in (config, config.get("text_config", {})):
        stored = part.get("dtype", part.get("torch_dtype"))
        if isinstance(stored, str):
            return stored.removeprefix("torch.")
    raise EngineError(f"{path} does not say how the weights are stored; give dtype")


def installed_version(python: str) -> str:
    """Version of the vLLM that ``python`` would start. Raises EngineError."""
    ended = _run(python, FIND_VERSION)
    if ended.returncode != 0:
        raise EngineError(f"{python} has no vLLM: {ended.stderr.strip().rpartition(chr(10))[2]}")
    return ended.stdout.strip()


def holds_tidegate(python: str) -> bool:
    """Whether the scheduler can be loaded there. Raises EngineError."""
    return _run(python, FIND_TIDEGATE).returncode == 0


def _run(python: str, source: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - an interpreter that the operator names
            [python, "-c", source], check=False, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{python} cannot be run: {error}") from error
