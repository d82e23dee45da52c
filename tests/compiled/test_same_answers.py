"""The compiled build is compiled, and decides as the pure one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from compiled.rooms import compiled_files
from compiled.tree import SOURCE, TREE

pytestmark = pytest.mark.compiled

ORIGINS = """
import importlib, sys
for name in sys.argv[1:]:
    print(importlib.import_module(name).__file__)
"""


def python(tree: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def simulated(tree: Path, scenario: str, seed: int) -> Any:
    """The report, less what the computer took for it."""
    arguments = ("-m", "tidegate.cli.main", "simulate", scenario, "--policy", "tidegate", "--seed", str(seed), "--json")
    return _without_wall_s(json.loads(python(tree, *arguments)))


def _without_wall_s(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_wall_s(each) for name, each in value.items() if name != "wall_s"}
    return [_without_wall_s(each) for each in value] if isinstance(value, list) else value


def test_what_is_to_be_compiled_is() -> None:
    names = [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in compiled_files(SOURCE)]
    origins = python(TREE, "-c", ORIGINS, *names).split()
    assert len(origins) == len(names)
    assert [origin for origin in origins if not origin.endswith(tuple(EXTENSION_SUFFIXES))] == []
    assert [origin for origin in origins if not origin.startswith(str(TREE))] == []


def test_it_says_that_it_is_compiled() -> None:
    assert python(TREE, "-m", "tidegate.cli.main", "--version").endswith("(compiled)\n")
    assert python(SOURCE.parent, "-m", "tidegate.cli.main", "--version").endswith("(pure Python)\n")


@pytest.mark.parametrize(("scenario", "seed"), [("campaign-bare", 1), ("silence-then-200", 2)])
def test_a_simulation_comes_out_the_same_to_the_last_digit(scenario: str, seed: int) -> None:
    pure = simulated(SOURCE.parent, scenario, seed)
    assert pure
    assert simulated(TREE, scenario, seed) == pure
