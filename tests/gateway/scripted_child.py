"""A data process of which a test writes the behaviour: ``python scripted_child.py BEHAVIOUR FD``."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from tidegate.gateway.channel import ChildEnd, open_child_end
from tidegate.gateway.messages import (
    Applied,
    Apply,
    AskLearned,
    AskMetrics,
    AskView,
    CallBack,
    Down,
    Drain,
    Drained,
    DrainReplica,
    Failed,
    Learned,
    Log,
    MetricsSnapshot,
    Observe,
    PollSoon,
    Ready,
    Records,
    Start,
    Stop,
    Up,
    View,
)
from tidegate.lens.metrics import Metrics
from tidegate.lens.row import Row


class Script:
    """Answers as a data process does, except where ``behaviour`` says otherwise:

    fail: cannot start; die: exits at once; mute: never answers ``Start``; crash: exits at the first
    ``AskView``; deaf: ignores ``Stop``; chatty: sends a record, a poll, a log line and a callback when ready.
    """

    def __init__(self, behaviour: str) -> None:
        self.behaviour = behaviour
        self.done = asyncio.Event()
        self.seen: list[str] = []
        self.channel: ChildEnd

    async def run(self, fd: int) -> None:
        if self.behaviour == "die":
            return
        sock = socket.socket(fileno=fd)
        self.channel = await open_child_end(sock, self.on_message, lambda error: self.done.set())
        await self.done.wait()

    def on_message(self, message: Down) -> None:
        match message:
            case Start(settings, learned, readings):
                self.seen += [] if learned is None else [f"learned {learned}"]
                self.start(settings)
                self.seen += [f"observe {name} {reading.ready}" for name, reading in readings.items()]
            case AskView() if self.behaviour == "crash":
                os._exit(3)
            case AskView() | AskMetrics() | AskLearned():
                self.channel.send(self.answer(message))
            case Apply(settings):
                problem = "no" if settings.get("bad") else ""
                self.channel.send(Applied([] if problem else ["swapped"], problem))
            case Observe(replica, reading):
                self.seen.append(f"observe {replica} {reading.ready}")
            case DrainReplica(replica, on):
                self.seen.append(f"drain {replica} {on}")
            case Drain():
                self.channel.send(Drained(0))
            case Stop() if self.behaviour != "deaf":
                self.done.set()

    def answer(self, question: AskView | AskMetrics | AskLearned) -> Up:
        match question:
            case AskView():
                return View({"seen": self.seen, "pid": os.getpid()}, 1.0)
            case AskMetrics():
                return MetricsSnapshot(Metrics(["chat"], ["interactive"], 1.0).snapshot({}, 0))
            case AskLearned():
                return Learned({"by": os.getpid()})

    def start(self, settings: dict[str, object]) -> None:
        self.seen.append(f"start {sorted(settings)}")
        if self.behaviour == "fail":
            self.channel.send(Failed("port 8000 is taken by pid 7; choose another with --port"))
            self.done.set()
        elif self.behaviour != "mute":
            self.channel.send(Ready("127.0.0.1", 8000, os.getpid()))
        if self.behaviour == "chatty":
            self.channel.send(Records([Row(1, "req-1", "/v1/completions", 200, "", 1.0, 2.0, 0)], 0))
            self.channel.send(PollSoon("chat-0"))
            self.channel.send(Log("warning", "slow"))
            self.channel.send(CallBack("http://127.0.0.1:9/", "job_1", b"{}"))


if __name__ == "__main__":
    asyncio.run(Script(sys.argv[1]).run(int(sys.argv[2])))
