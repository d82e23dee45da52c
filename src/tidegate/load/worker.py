"""One process of the generator.

    python -m tidegate.load.worker FD

``FD`` is its end of the socket pair to the crew. It ends when the crew closes the other.
"""

from __future__ import annotations

import asyncio
import gc
import pickle
import resource
import signal
import socket
import sys
import traceback

import uvloop

from tidegate.gateway.channel import Channel
from tidegate.load.crew_messages import Begin, Broken, CrewDown, CrewUp, Halt, Play, Prepared
from tidegate.load.sender import Sender
from tidegate.load.target import Target
from tidegate.load.worker_part import Task, WorkerPart


class Worker:
    """Plays one part after the other; keeps its connections from one to the next."""

    def __init__(self) -> None:
        self._channel: Channel[CrewUp, CrewDown] = Channel(CrewDown, self._on_message, self._on_closed)
        self._gone = asyncio.Event()
        self._senders: dict[Target, Sender] = {}
        self._part: WorkerPart | None = None
        self._playing: asyncio.Task[None] | None = None

    async def serve(self, channel_fd: int) -> None:
        """Until the crew is gone."""
        sock = socket.socket(fileno=channel_fd)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._channel, sock=sock)
        self._channel.listen()
        await self._gone.wait()
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait([self._playing])
        for sender in self._senders.values():
            await sender.close()

    def _on_message(self, message: CrewDown) -> None:
        match message:
            case Play(task, zero, grace_s):
                self._prepare(task, zero, grace_s)
            case Begin(began) if self._part is not None:
                self._playing = asyncio.get_running_loop().create_task(self._play(self._part, began))
            case Halt() if self._part is not None:
                self._part.halt()

    def _on_closed(self, error: Exception | None) -> None:
        del error  # However it went, there is nobody left to send for.
        self._gone.set()

    def _prepare(self, pickled: bytes, zero: float, grace_s: float) -> None:
        try:
            task: Task = pickle.loads(pickled)  # noqa: S301 - from our own parent, over a pair of sockets
            sender = self._senders.get(task.target)
            if sender is None:
                sender = self._senders[task.target] = Sender(task.target, zero, worker=task.worker, grace_s=grace_s)
            self._part = WorkerPart(task, sender, self._channel.send)
        except Exception as error:  # noqa: BLE001 - whatever a source or a URL does wrong, the crew is told
            self._break(error)
            return
        stop_collecting()
        self._channel.send(Prepared())

    async def _play(self, part: WorkerPart, began: float) -> None:
        try:
            await part.play(began)
        except Exception as error:  # noqa: BLE001 - as above: an ask that cannot be made
            self._break(error)
        finally:
            self._part = None
            gc.enable()

    def _break(self, error: Exception) -> None:
        traceback.print_exception(error)
        self._channel.send(Broken("".join(traceback.format_exception_only(error)).strip()))


def stop_collecting() -> None:
    """What is made for a request is freed with it; a collection in the middle of a phase would be measured as lag."""
    gc.collect()
    gc.freeze()
    gc.disable()


def take_all_sockets() -> None:
    """As many files as this user may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(channel_fd: int) -> None:
    # A Ctrl-C in the terminal is for the crew, which ends the phase in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    take_all_sockets()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(channel_fd))


async def serve(channel_fd: int) -> None:
    await Worker().serve(channel_fd)


if __name__ == "__main__":
    main(int(sys.argv[1]))
