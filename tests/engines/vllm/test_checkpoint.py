from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tidegate.engines.vllm.checkpoint import dtype_of, installed_version
from tidegate.errors import EngineError


@pytest.mark.parametrize(
    "config",
    [
        {"torch_dtype": "bfloat16"},
        {"dtype": "bfloat16"},
        {"torch_dtype": "torch.bfloat16"},
        {"text_config": {"dtype": "bfloat16"}},
    ],
)
def test_the_dtype_is_that_of_the_checkpoint(config: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert dtype_of(str(tmp_path)) == "bfloat16"


def test_a_checkpoint_that_does_not_say_its_dtype_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"config\.json cannot be read"):
        dtype_of(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EngineError, match="give dtype"):
        dtype_of(str(tmp_path))


def test_the_version_is_found_without_importing_vllm(tmp_path: Path) -> None:
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "_version.py").write_text("version = '0.32.0'")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert installed_version(str(python)) == "0.32.0"


def test_an_environment_without_vllm_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="has no vLLM"):
        installed_version(sys.executable)
    with pytest.raises(EngineError, match="cannot be run"):
        installed_version(str(tmp_path / "nowhere"))
