"""A process that fills a control group's memory, as a leak in the same container does.

Run as ``python -m tidegate.load.drills.memory_hog FOLDER BYTES``; it holds what it has taken until it is ended.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

STEP_BYTES = 4 << 20
STEP_S = 0.01


def main() -> int:
    folder, size_bytes = Path(sys.argv[1]), int(sys.argv[2])
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    held: list[bytes] = []
    while len(held) * STEP_BYTES < size_bytes:
        # Written, not only asked for: memory that nobody has touched counts for nothing.
        held.append(bytes([len(held) % 255 + 1]) * STEP_BYTES)
        time.sleep(STEP_S)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
