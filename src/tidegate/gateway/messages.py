"""What the parent and its data process say to each other. Plain values only.

Up: Ready, Failed, Records, MetricsSnapshot, View, Applied, Learned, MarksTold, PollSoon, Log, CallBack, Drained.
Down: Start, Observe, Apply, SetMark, LiftMark, AskView, AskMetrics, AskLearned, AskMarks, DrainReplica, Drain, Stop.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.lens.counted import Snapshot
from tidegate.lens.row import Row
from tidegate.policy.marks import MarkKind
from tidegate.policy.reading import Reading


class Message(msgspec.Struct, array_like=True, tag=True):
    """Any message; its class name goes first on the wire."""


# Up: data process to parent.


class Ready(Message):
    """The data port is open."""

    host: str
    port: int
    pid: int


class Failed(Message):
    """It cannot start, or cannot go on: ``problem`` says why and what to do. The process then exits."""

    problem: str


class Records(Message):
    """Requests that were closed, in order of closing. ``lost`` counts those dropped since the start
    because the parent did not read."""

    rows: list[Row]
    lost: int = 0


class MetricsSnapshot(Message):
    """Answers ``AskMetrics``."""

    snapshot: Snapshot


class View(Message):
    """Answers ``AskView``: ``Path.view(now)``."""

    view: dict[str, Any]
    at: float
    """Monotonic clock."""


class Applied(Message):
    """Answers ``Apply``, ``SetMark`` and ``LiftMark``. ``changes`` says what differs, a line each; ``problem`` why
    nothing was applied."""

    changes: list[str]
    problem: str = ""


class Learned(Message):
    """``Path.dump``: sent when asked for, and once more at the end."""

    state: dict[str, Any]


class MarksTold(Message):
    """Answers ``AskMarks``: every mark, as ``Marks.dump`` has it."""

    marks: list[dict[str, Any]]


class PollSoon(Message):
    """An abort waits for its confirmation: read this replica promptly."""

    replica: str


class Log(Message):
    """A line for the parent's log. ``level``: "info", "warning" or "error"."""

    level: str
    text: str


class CallBack(Message):
    """A job has ended: POST ``body`` to ``url``."""

    url: str
    message_id: str
    body: bytes


class Drained(Message):
    """Answers ``Drain``: nothing runs any more, or time ran out with ``open_requests`` left."""

    open_requests: int


# Down: parent to data process.


class Start(Message):
    """The first message: the data process's whole settings (``gateway.settings``) as plain data."""

    settings: dict[str, Any]
    learned: dict[str, Any] | None = None
    """The last ``Learned`` of the data process before it; None: it is the first."""
    readings: dict[str, Reading] = {}
    """The latest, by replica, known before it listens."""


class Observe(Message):
    """A look at a replica; ``reading.at`` is on the shared monotonic clock."""

    replica: str
    reading: Reading


class Apply(Message):
    """The whole settings (``gateway.settings``) as they shall be from here on."""

    settings: dict[str, Any]


class SetMark(Message):
    """Hold a key back for a while."""

    kind: MarkKind
    key: str
    ttl_s: float
    reason: str
    evidence: str


class LiftMark(Message):
    """Take a mark away before its time."""

    kind: MarkKind
    key: str


class AskMarks(Message):
    """Send one ``MarksTold``."""


class AskView(Message):
    """Send one ``View``."""


class AskMetrics(Message):
    """Send one ``MetricsSnapshot``."""


class AskLearned(Message):
    """Send one ``Learned``."""


class DrainReplica(Message):
    """Admit nothing more to this replica (``on``), or admit again."""

    replica: str
    on: bool


class Drain(Message):
    """Accept nothing more, finish what runs within ``within_s``, then say ``Drained``."""

    within_s: float


class Stop(Message):
    """End at once; whatever still runs ends as ``shutdown``."""


Up = (
    Ready
    | Failed
    | Records
    | MetricsSnapshot
    | View
    | Applied
    | Learned
    | MarksTold
    | PollSoon
    | Log
    | CallBack
    | Drained
)
Down = (
    Start
    | Observe
    | Apply
    | SetMark
    | LiftMark
    | AskView
    | AskMetrics
    | AskLearned
    | AskMarks
    | DrainReplica
    | Drain
    | Stop
)
