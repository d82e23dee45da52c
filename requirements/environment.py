"""Makes ``.venv`` from the hash-pinned locks, with nothing but Python and pip present.

    python3 requirements/environment.py .venv run|dev
    python3 requirements/environment.py .venv-vllm vllm

Called by the Makefile when a lock is newer than what ``.venv`` holds. Every package is pinned with
its hash, so pip is told to fetch exactly those (``--no-deps``) and resolves nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {
    "run": ("run.lock", "model.lock"),
    "dev": ("dev.lock", "model.lock"),
    "vllm": ("vllm.lock", "model.lock"),
}
NO_VENV = """\
tidegate: {python} can make no virtual environment: its {module} module is missing.
  Debian or Ubuntu:  apt-get install python3-venv
  elsewhere:         name a complete Python of 3.11 or later: make PYTHON=/path/to/python3 ..."""


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def works(environment: Path) -> bool:
    """Whether the interpreter that the environment was made from is still there."""
    python = python_of(environment)
    return python.exists() and subprocess.run([python, "-c", ""], check=False).returncode == 0


def has_useful_pip() -> bool:
    """Whether the pip beside this interpreter can install into another environment (``--python``, pip 22.3).

    Saves a third of the time that a fresh environment takes, and is the only way on a Debian without ``ensurepip``.
    """
    if importlib.util.find_spec("pip") is None:
        return False
    major, minor = re.findall(r"\d+", importlib.metadata.version("pip"))[:2]
    return (int(major), int(minor)) >= (22, 3)


def missing_module() -> str | None:
    """The module without which no environment can be made here, or None."""
    if importlib.util.find_spec("venv") is None:
        return "venv"
    if not has_useful_pip() and importlib.util.find_spec("ensurepip") is None:
        return "ensurepip"
    return None


def create(environment: Path) -> None:
    if environment.exists():
        shutil.rmtree(environment)
    arguments = ["--without-pip"] if has_useful_pip() else []
    subprocess.run([sys.executable, "-m", "venv", *arguments, environment], check=True)


def pip_of(environment: Path) -> list[str]:
    if has_useful_pip():
        return [sys.executable, "-m", "pip", "--python", str(python_of(environment))]
    return [str(python_of(environment)), "-m", "pip"]


def install(environment: Path, goal: str) -> None:
    """Two calls of pip: what the locks pin, then this checkout itself (editable, nothing fetched).

    Bytecode is left to the first import, which compiles only what is used.
    """
    pip = [*pip_of(environment), "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    locks = [f"--requirement={ROOT / 'requirements' / name}" for name in LOCKS[goal]]
    subprocess.run([*pip, "--require-hashes", "--only-binary=:all:", *locks], check=True)
    subprocess.run([*pip, "--no-build-isolation", "--no-index", "--editable", ROOT], check=True)


def main(environment: Path, goal: str) -> int:
    if not works(environment):
        missing = missing_module()
        if missing is not None:
            print(NO_VENV.format(python=sys.executable, module=missing), file=sys.stderr)
            return 1
        create(environment)
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
