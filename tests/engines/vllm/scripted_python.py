"""An interpreter whose vLLM is ``scripted_server.py``."""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("scripted_server.py")


def scripted_python(folder: Path, version: str = "0.32.0", *, is_bare: bool = False) -> str:
    """``is_bare``: it finds neither Tidegate nor any other installed package."""
    package = folder / "vllm"
    module = package / "entrypoints" / "openai" / "api_server.py"
    module.parent.mkdir(parents=True)
    for each in (package, module.parent.parent, module.parent):
        (each / "__init__.py").touch()
    (package / "_version.py").write_text(f"version = {version!r}")
    module.write_text(f"import runpy\nrunpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n")
    python = folder / "python"
    flags = " -S" if is_bare else ""
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable}{flags} "$@"\n')
    python.chmod(0o755)
    return str(python)


def checkpoint(folder: Path, name: str = "sound") -> str:
    """A folder that says enough of a model for its KV to be worked out: 23 040 bytes a token."""
    path = folder / name
    path.mkdir()
    (path / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, '
        '"num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152, "torch_dtype": "bfloat16", '
        '"max_position_embeddings": 8192}'
    )
    return str(path)
