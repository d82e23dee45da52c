"""Why a vLLM server ended, out of its last lines, and whether it would end so again."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

BAD_COMMAND_LINE = 2
"""Exit status of argparse."""

LONGEST_CAUSE = 500

_ERROR = re.compile(r"\b(\w*(?:Error|Exception)|error): (\S.*)")
_SECOND_HAND = (
    "Engine core initialization failed",
    "WorkerProc initialization failed",
    "EngineDeadError",
    "Worker proc died",
    "leaked",
)
"""What one process of vLLM says when another has told the cause already."""

_MISTAKES = re.compile(
    r"validation errors? for|is larger than the available KV cache memory|less than one block|"
    r"greater than the derived max_model_len|unrecognized arguments|expected one argument|invalid choice|"
    r"ModuleNotFoundError|No module named|does not exist|not a valid model identifier|is not supported|"
    r"Tidegate's scheduler|tidegate:",
    re.IGNORECASE,
)
"""Errors that no restart mends. What is missing here is only tried three times (``fleet.restarts``)."""


def cause_in(lines: Sequence[str]) -> str:
    """The error that the others follow from; "" when no line reads like one."""
    found = [told for at, line in enumerate(lines) if (told := _error_in(line, lines[at + 1 : at + 3]))]
    first_hand = [text for text in found if not any(words in text for words in _SECOND_HAND)]
    return (first_hand or found or [""])[-1][:LONGEST_CAUSE]


def _error_in(line: str, following: Sequence[str]) -> str:
    match = _ERROR.search(line)
    if match is None or " WARNING " in line:
        return ""
    # Pydantic counts in one line and tells in the next.
    told = " ".join(each.strip() for each in following[:1]) if "validation error" in line else ""
    return f"{match[1]}: {match[2]} {told}".strip()


def is_mistake(status: int, cause: str) -> bool:
    """Whether a start that ended so would fail the same way again."""
    return status == BAD_COMMAND_LINE or _MISTAKES.search(cause) is not None


def in_words(status: int, cause: str, *, was_ready: bool) -> str:
    """``vLLM was killed by SIGKILL while it served: …``; a status of 0 is no excuse."""
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    when = "while it served" if was_ready else "during its start"
    return f"vLLM {how} {when}{f': {cause}' if cause else ''}"
