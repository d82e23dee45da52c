"""Small real processes that behave like an engine, well or badly."""

from __future__ import annotations

import sys

from tidegate.engines.launch import CANNOT_RUN, Launch

SERVES = 'import sys; print(\'{"listening": "http://127.0.0.1:9"}\', flush=True); sys.stdin.read()'
"""Says where it listens, and ends with its input."""
GREETS = (
    f"import sys; line = sys.stdin.readline(); print('told', line.strip()); print('odd', file=sys.stderr); {SERVES}"
)
"""Also says what it was told, and writes to both outputs."""
CRASHES = 'import os; print(\'{"listening": "http://127.0.0.1:9"}\', flush=True); os.kill(os.getpid(), 9)'
FAILS = 'import sys; print(\'{"problem": "no luck"}\'); sys.exit(3)'
CANNOT = f'import sys; print(\'{{"problem": "install it"}}\'); sys.exit({CANNOT_RUN})'
DIES_SILENTLY = "import sys; sys.exit(5)"
NEVER_READY = "import sys; sys.stdin.read()"
IS_STUBBORN = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SERVES}; time.sleep(600)"
"""Ends neither for SIGTERM nor with its input."""
HAS_A_CHILD = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    f"print('child', child.pid, flush=True); {SERVES}"
)


def launch(source: str, first_line: bytes = b"{}\n") -> Launch:
    return Launch(name="engine", command=(sys.executable, "-c", source), first_line=first_line)
