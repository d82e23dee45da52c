"""Builds ``build/compiled``: the whole package, with the hot rooms compiled by mypyc.

    python -m compiled.tree

With that folder on PYTHONPATH, ``import tidegate`` finds the compiled package before the installed one.
``TIDEGATE_COMPILED_FILES=many`` makes a C file of each module: built in a third of the time, and 5 to 20 % slower
(``bench/decisions.py``), because the C compiler sees no two modules together. Enough for tests.
``src`` is only read. Each compiled module lies beside its source, which tracebacks and readers need and
the interpreter passes over. Nothing is done when nothing changed since the last build.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from compiled.prepared import prepared
from compiled.rooms import compiled_files

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tidegate"
TREE = ROOT / "build" / "compiled"
WORK = ROOT / "build" / "compiling"
"""Generated C, objects and mypy's cache: what makes the next build quicker."""
STAMP = TREE / "stamp"
OPTIMISATION = "2"
IS_SPLIT = os.environ.get("TIDEGATE_COMPILED_FILES") == "many"

NO_COMPILER = """\
tidegate: the compiled build needs a C compiler, and '{name}' is not there.
  Debian or Ubuntu:  apt-get install gcc
  Or name another:   CC=clang make compiled
The pure Python build needs none: make run."""
NO_HEADERS = """\
tidegate: the compiled build needs Python's C headers, and there is no {path}.
  Debian or Ubuntu:  apt-get install python3-dev"""


def missing() -> str | None:
    """What the build lacks on this machine, in words, or None."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return NO_COMPILER.format(name=compiler)
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return None if header.exists() else NO_HEADERS.format(path=header)


def sources() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def stamp() -> str:
    """Differs whenever the tree would."""
    digest = hashlib.sha256(f"{sys.version} {importlib.metadata.version('mypy')} {OPTIMISATION} {IS_SPLIT}".encode())
    for path in [*sources(), *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(b"%b\0%b\0" % (bytes(path.relative_to(ROOT)), path.read_bytes()))
    return digest.hexdigest()


def is_current() -> bool:
    return STAMP.exists() and STAMP.read_text() == stamp()


def mirror(folder: Path) -> None:
    """Make ``folder``/tidegate equal to the source; a file that is the same is not touched, nor is what is compiled."""
    wanted = {folder / "tidegate" / path.relative_to(SOURCE): path for path in sources()}
    for stale in (folder / "tidegate").rglob("*.py"):
        if stale not in wanted:
            stale.unlink()
    for target, path in wanted.items():
        if not target.exists() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def compile_modules() -> None:
    """Run mypyc and the C compiler on a copy of the source; what comes out goes into the tree."""
    from mypyc.build import mypycify  # noqa: PLC0415  # slow, and a tree that is current does not need it
    from setuptools import setup  # noqa: PLC0415  # likewise

    # Before anything can fail: native code that is older than the source beside it would be taken for it.
    for each in (TREE / "tidegate").rglob("*.so"):
        each.unlink()
    os.chdir(WORK)  # mypy finds the package, and keeps its cache, where it runs
    files = [str(path) for path in compiled_files(Path("tidegate"))]
    for file in files:
        Path(file).write_text(prepared(Path(file).read_text()))
    modules = mypycify(
        ["--no-error-summary", *files],
        opt_level=OPTIMISATION,
        debug_level="0",
        multi_file=IS_SPLIT,
        group_name="tidegate",
        target_dir="c",
    )
    setup(
        name="tidegate-compiled",
        ext_modules=modules,
        script_args=["--quiet", "build_ext", "--build-lib", str(TREE), "--build-temp", "objects"],
    )


def main() -> int:
    if is_current():
        print(f"tidegate: {TREE.relative_to(ROOT)} is current")
        return 0
    problem = missing()
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    print(f"tidegate: compiling the hot rooms (some {'two' if IS_SPLIT else 'six'} minutes)", flush=True)
    made_of = stamp()
    STAMP.unlink(missing_ok=True)
    mirror(WORK)
    mirror(TREE)
    compile_modules()
    STAMP.write_text(made_of)
    print(f"tidegate: PYTHONPATH={TREE.relative_to(ROOT)} runs the compiled build")
    return 0


if __name__ == "__main__":
    sys.exit(main())
