"""Which build runs is told by where its modules come from."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tidegate.cli.build import COMPILED, PURE, SIGNS, build


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two modules from source, whose names no other test has."""
    names = ("build_sign_one", "build_sign_two")
    for name in names:
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return names


def native(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}{EXTENSION_SUFFIXES[0]}").touch()


def test_source_is_the_pure_build(modules: tuple[str, str]) -> None:
    assert build(modules) == PURE


def test_native_code_beside_the_source_is_the_compiled_build(modules: tuple[str, str], tmp_path: Path) -> None:
    native(tmp_path, *modules)
    assert build(modules) == COMPILED


def test_half_of_it_is_not_called_compiled(modules: tuple[str, str], tmp_path: Path) -> None:
    native(tmp_path, modules[0])
    assert build(modules) == PURE


def test_the_modules_that_are_looked_at_exist() -> None:
    assert build(SIGNS) in (PURE, COMPILED)
    assert build(("tidegate.policy.no_such_module",)) == PURE
