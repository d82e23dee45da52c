"""Makes ``.venv`` from the hash-pinned locks, with nothing but Python and pip present.

    python3 requirements/environment.py .venv run|dev

Called by the Makefile when a lock is newer than what ``.venv`` holds. Every package is pinned with
its hash, so pip is told to fetch exactly those (``--no-deps``) and resolves nothing.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"run": ("run.lock", "model.lock"), "dev": ("dev.lock", "model.lock")}
NO_VENV = """\
tidegate: {python} can make no virtual environment: its {module} module is missing.
  Debian or Ubuntu:  apt-get install python3-venv
  elsewhere:         use a complete Python of 3.11 or later: make {goal} PYTHON=/path/to/python3"""


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def works(environment: Path) -> bool:
    """Whether the interpreter that the environment was made from is still there."""
    python = python_of(environment)
    return python.exists() and subprocess.run([python, "-c", ""], check=False).returncode == 0


def missing_module(own_pip: bool) -> str | None:
    """The module without which no environment can be made here, or None.

    Debian ships Python without ``ensurepip``; a pip beside it installs into the environment as well.
    """
    if importlib.util.find_spec("venv") is None:
        return "venv"
    if not own_pip and importlib.util.find_spec("pip") is None:
        return "ensurepip"
    return None


def create(environment: Path, own_pip: bool) -> None:
    if environment.exists():
        shutil.rmtree(environment)
    arguments = [] if own_pip else ["--without-pip"]
    subprocess.run([sys.executable, "-m", "venv", *arguments, environment], check=True)


def pip_of(environment: Path) -> list[str]:
    """The pip inside the environment, else the one beside this interpreter, aimed at it."""
    python = python_of(environment)
    probe = subprocess.run([python, "-c", "import pip"], check=False, capture_output=True)
    if probe.returncode == 0:
        return [str(python), "-m", "pip"]
    return [sys.executable, "-m", "pip", "--python", str(python)]


def install(environment: Path, goal: str) -> None:
    """Two calls of pip: what the locks pin, then this checkout itself (editable, nothing fetched)."""
    pip = [*pip_of(environment), "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    locks = [f"--requirement={ROOT / 'requirements' / name}" for name in LOCKS[goal]]
    subprocess.run([*pip, "--require-hashes", "--only-binary=:all:", *locks], check=True)
    subprocess.run([*pip, "--no-build-isolation", "--no-index", "--editable", ROOT], check=True)


def main(environment: Path, goal: str) -> int:
    if not works(environment):
        own_pip = importlib.util.find_spec("ensurepip") is not None
        missing = missing_module(own_pip)
        if missing is not None:
            print(NO_VENV.format(python=sys.executable, module=missing, goal=goal), file=sys.stderr)
            return 1
        create(environment, own_pip)
    try:
        install(environment, goal)
    except subprocess.CalledProcessError as failure:
        print(f"tidegate: pip ended with {failure.returncode}; its message stands above.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in LOCKS:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY {'|'.join(LOCKS)}")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
