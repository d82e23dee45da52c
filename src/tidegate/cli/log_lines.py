"""The service's log: lines on standard output, each at once."""

from __future__ import annotations

LABELS = {"info": "[INFO]", "warning": "[WARN]", "error": "[ERROR]"}


class LogLines:
    """``say``: a log that cannot be written (a full disk, a reader that is gone) costs lines and not the service. How
    many were lost is told when there is room again."""

    def __init__(self) -> None:
        self._lost = 0
        self._problem = ""

    def say(self, level: str, text: str) -> None:
        """One line, also into a pipe."""
        lines = f"{LABELS[level]} {text}"
        if self._lost:
            lines = f"[WARN] this log could not be written {self._lost} times: {self._problem}\n{lines}"
        try:
            print(lines, flush=True)
        except OSError as error:
            self._lost += 1
            self._problem = error.strerror or type(error).__name__
        else:
            self._lost = 0
