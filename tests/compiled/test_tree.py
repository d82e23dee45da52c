"""How the compiled tree is put together; the compiler itself runs in ``make compiled``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compiled import tree
from compiled.rooms import ROOMS, compiled_files
from compiled.wheel import TAG, record


def test_every_file_of_the_policies_is_compiled_and_no_package_is() -> None:
    files = set(compiled_files(tree.SOURCE))
    rooms = {path for path in (tree.SOURCE / "policy").rglob("*.py") if path.name != "__init__.py"}
    assert rooms < files
    assert [path for path in files if path.name == "__init__.py"] == []


def test_each_room_says_why_it_is_compiled() -> None:
    assert [room.folder for room in ROOMS if len(room.reason.split()) < 3] == []


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    for room in ROOMS:
        (tmp_path / room.folder).mkdir()
    (tmp_path / "policy" / "path.py").touch()
    with pytest.raises(FileNotFoundError, match="lens/edge"):
        list(compiled_files(tmp_path))


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -pipe")
    told = tree.missing()
    assert told is not None
    assert "'no-such-compiler' is not there" in told
    assert "apt-get install gcc" in told


def test_without_headers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", sys.executable)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    told = tree.missing()
    assert told is not None
    assert f"there is no {tmp_path}/Python.h" in told
    (tmp_path / "Python.h").touch()
    assert tree.missing() is None


def test_a_mirror_touches_only_what_changed(tmp_path: Path) -> None:
    tree.mirror(tmp_path)
    path, gone = tmp_path / "tidegate" / "policy" / "path.py", tmp_path / "tidegate" / "policy" / "gone.py"
    gone.touch()
    written_at = path.stat().st_mtime_ns
    errors = tmp_path / "tidegate" / "errors.py"
    errors.write_text("other")
    tree.mirror(tmp_path)
    assert path.stat().st_mtime_ns == written_at
    assert errors.read_bytes() == (tree.SOURCE / "errors.py").read_bytes()
    assert not gone.exists()


def test_a_wheel_names_its_platform_and_records_its_files() -> None:
    assert TAG.startswith(f"cp{sys.version_info.major}{sys.version_info.minor}-")
    lines = record({"b": b"", "a": b"x"}, "info/RECORD").decode().splitlines()
    assert lines == [
        "a,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,1",
        "b,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0",
        "info/RECORD,,",
    ]
