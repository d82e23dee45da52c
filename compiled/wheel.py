"""Packs ``build/compiled`` as a wheel for this interpreter and platform into ``dist``.

    python -m compiled.wheel

The metadata is that of the pure package, from the same ``pyproject.toml``; name and version are the same
too, so that either can take the other's place.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from flit_core import buildapi

from compiled import tree

DIST = tree.ROOT / "dist"
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
TAG = f"{PYTHON}-{PYTHON}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
WHEEL = f"Wheel-Version: 1.0\nGenerator: tidegate compiled.wheel\nRoot-Is-Purelib: false\nTag: {TAG}\n"


def contents(metadata: Path) -> dict[str, bytes]:
    """Every file of the wheel but its record, by its name in it."""
    packed = [path for path in tree.TREE.rglob("*") if path.is_file() and path != tree.STAMP]
    found = {path.relative_to(tree.TREE).as_posix(): path.read_bytes() for path in packed if path.suffix != ".pyc"}
    found |= {
        path.relative_to(metadata).as_posix(): path.read_bytes() for path in metadata.rglob("*") if path.is_file()
    }
    return found


def record(files: dict[str, bytes], own_name: str) -> bytes:
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    return "\n".join([*lines, f"{own_name},,", ""]).encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main() -> int:
    status = tree.main()
    if status:
        return status
    os.chdir(tree.ROOT)  # where the build interface of the pure package looks for its pyproject.toml
    with tempfile.TemporaryDirectory() as folder:
        info = buildapi.prepare_metadata_for_build_wheel(folder)
        files = contents(Path(folder)) | {f"{info}/WHEEL": WHEEL.encode()}
        files[f"{info}/licenses/LICENSE"] = (tree.ROOT / "LICENSE").read_bytes()
    DIST.mkdir(exist_ok=True)
    target = DIST / f"{info.removesuffix('.dist-info')}-{TAG}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in sorted(files.items()):
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/RECORD", record(files, f"{info}/RECORD"))
    print(f"tidegate: {target.relative_to(tree.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
