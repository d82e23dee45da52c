"""Learned answer lengths on disk: a restarted engine begins with what it knew."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tidegate.policy.lengths import LengthHistory

SAVE_EVERY = 64
"""Answers between two writes. A write takes about a millisecond of the engine's step."""


class HistoryFile:
    """One file for one model. A lost or broken one costs only a cold start."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.problem: str | None = None
        """The last thing that went wrong, for the log."""
        self._unsaved = 0

    def load(self) -> LengthHistory:
        """What is there; an empty history, and ``problem``, if it cannot be read."""
        history = LengthHistory()
        try:
            history.restore(json.loads(self.path.read_text()))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            self.problem = f"learned lengths in {self.path} cannot be used: {error}; they are learned anew"
        return history

    def note(self, history: LengthHistory) -> None:
        """One more answer was recorded."""
        self._unsaved += 1
        if self._unsaved >= SAVE_EVERY:
            self.save(history)

    def save(self, history: LengthHistory) -> None:
        """Replace the file as a whole: nobody ever reads half of one."""
        self._unsaved = 0
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.draft")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(history.dump()))
            draft.replace(self.path)
        except OSError as error:
            self.problem = f"learned lengths cannot be written to {self.path}: {error}"
