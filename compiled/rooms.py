"""Which modules the compiled build compiles, and why those.

Compiled is what runs for every request or for every chunk of a stream. What runs once per start, once
per second or in the parent gains nothing and stays Python, as do modules whose classes another library
builds for itself at import (``msgspec.Struct``), which mypyc cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    folder: str
    """Below src/tidegate."""
    files: tuple[str, ...]
    """Patterns relative to the folder."""
    reason: str


ROOMS = (
    Room("policy", ("**/*.py",), "decides about every request; all of it is plain classes and arithmetic"),
    Room("lens", ("edge.py", "metrics.py"), "counts every request"),
    Room(
        "wire",
        ("body.py", "header_names.py", "requests.py", "responses.py", "sse.py"),
        "reads every head, and looks at every chunk",
    ),
    Room(
        "gateway",
        (
            "access.py",
            "audience.py",
            "beginnings.py",
            "call.py",
            "client_connection.py",
            "counting.py",
            "driver.py",
            "edge_of.py",
            "engine_connection.py",
            "error_answer.py",
            "attempt.py",
            "exchange.py",
            "gateway.py",
            "gathering.py",
            "keyed_calls.py",
            "intake.py",
            "job.py",
            "job_answers.py",
            "job_document.py",
            "job_watch.py",
            "jobs.py",
            "journal.py",
            "judgement.py",
            "local_answers.py",
            "outbox.py",
            "own_lines.py",
            "pool.py",
            "preference.py",
            "recording.py",
            "relay.py",
            "reply.py",
            "routes.py",
            "screening.py",
            "seat.py",
            "shared.py",
            "watching.py",
        ),
        "carries every request and every chunk between client and engine",
    ),
)


def compiled_files(package: Path) -> Iterator[Path]:
    """The files to compile below the folder of the package, sorted within each room."""
    for room in ROOMS:
        for pattern in room.files:
            found = sorted(path for path in (package / room.folder).glob(pattern) if path.name != "__init__.py")
            if not found:
                raise FileNotFoundError(f"compiled/rooms.py names {room.folder}/{pattern}, which does not exist")
            yield from found
