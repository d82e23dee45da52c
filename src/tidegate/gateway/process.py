"""The data process: ``python -m tidegate.gateway.process FD``, where FD is its end of the channel.

Started by its parent (``child.py``), which sends the settings first. It ends when told to, when it
gets SIGTERM and has drained, or when the parent is gone and what runs is finished.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import random
import signal
import socket
import sys
import time
from functools import partial
from typing import Any

from tidegate.errors import TidegateError
from tidegate.gateway.channel import ChildEnd, open_child_end
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.dial import Dialer
from tidegate.gateway.driver import Driver
from tidegate.gateway.gateway import Gateway, Surroundings
from tidegate.gateway.journal import Journal
from tidegate.gateway.messages import (
    Applied,
    Apply,
    AskLearned,
    AskMarks,
    AskMetrics,
    AskView,
    CallBack,
    Down,
    Drain,
    Drained,
    DrainReplica,
    Failed,
    Learned,
    LiftMark,
    Log,
    MarksTold,
    MetricsSnapshot,
    Observe,
    PollSoon,
    Ready,
    SetMark,
    Start,
    Stop,
    Up,
    View,
)
from tidegate.gateway.outbox import Outbox
from tidegate.gateway.ports import open_port
from tidegate.gateway.settings import Settings, from_plain
from tidegate.gateway.tally import Tally
from tidegate.gateway.ticker import Ticker, stop_automatic_collection
from tidegate.lens.metrics import Metrics
from tidegate.policy import change
from tidegate.policy.path import Path
from tidegate.policy.reading import Reading

PATROL_EVERY_S = 0.5


class DataProcess:
    """Everything that lives in one data process, and its talk with the parent."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel: ChildEnd | None = None
        self._settings: Settings | None = None
        self._gateway: Gateway | None = None
        self._driver: Driver | None = None
        self._journal: Journal | None = None
        self._outbox: Outbox | None = None
        self._ticker: Ticker | None = None
        self._patrol_timer: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._draining: asyncio.Task[int] | None = None
        self._problems: list[str] = []
        self._over = asyncio.Event()

    async def run(self, channel_fd: int) -> None:
        """Live until it is over."""
        sock = socket.socket(fileno=channel_fd)
        self._channel = await open_child_end(sock, self._on_message, self._on_parent_gone)
        self._loop.add_signal_handler(signal.SIGTERM, self._drain_and_end)
        self._loop.set_exception_handler(self._on_bug)
        await self._over.wait()
        await self._close()

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._patrol_timer is not None:
            self._patrol_timer.cancel()
        if self._ticker is not None:
            self._ticker.stop()
        if self._gateway is not None:
            self._gateway.stop()
        if self._driver is not None:
            self._send(Learned(self._driver.dump()))
            self._driver.stop()
        # What was written last must get out before the process ends.
        await asyncio.sleep(0)
        if self._outbox is not None:
            self._outbox.drain()
        if self._channel is not None:
            self._channel.close()
        await asyncio.sleep(0)

    # ---- the parent's messages --------------------------------------------------------------

    def _on_message(self, message: Down) -> None:
        match message:
            case Start():
                self._start(message)
            case Observe(replica, reading):
                self._observe(replica, reading)
            case Apply(plain):
                self._send(self._apply(plain))
            case SetMark() | LiftMark():
                self._send(self._mark(message))
            case Drain(within_s):
                self._start_draining(within_s).add_done_callback(self._tell_drained)
            case Stop():
                self._over.set()
            case _:
                if self._driver is not None:
                    self._on_question(message, self._driver)

    def _on_question(self, message: Down, driver: Driver) -> None:
        match message:
            case AskMarks():
                self._send(MarksTold(driver.marks()))
            case AskView():
                self._send(View(self._view(driver), self._loop.time()))
            case AskMetrics() if self._journal is not None:
                lost = self._outbox.lost if self._outbox is not None else 0
                self._send(MetricsSnapshot(self._journal.metrics.snapshot(self._view(driver), lost)))
            case AskLearned():
                self._send(Learned(driver.dump()))
            case DrainReplica(replica, on):
                driver.apply(change.Drain(replica, on))

    def _view(self, driver: Driver) -> dict[str, object]:
        return driver.view() if self._gateway is None else {**driver.view(), **self._gateway.view()}

    def _observe(self, replica: str, reading: Reading) -> None:
        if self._driver is not None and self._gateway is not None:
            self._driver.observe(replica, reading)
            self._gateway.note_reading(replica, is_ready=reading.ready)

    def _start(self, start: Start) -> None:
        try:
            settings = from_plain(start.settings)
            self._build(settings, start.learned)
        except (TidegateError, ValueError) as error:
            self._fail(str(error))
            return
        for replica, reading in start.readings.items():
            self._observe(replica, reading)
        self._loop.create_task(self._listen(settings)).add_done_callback(self._on_listening)

    def _build(self, settings: Settings, learned: dict[str, Any] | None) -> None:
        self._settings = settings
        channel = self._channel
        if channel is None:
            return
        self._outbox = Outbox(channel, self._loop)
        upstreams = {replica.upstream for replica in settings.path.replicas}
        metrics = Metrics(upstreams, settings.path.classes.classes, time.time())
        self._journal = Journal(metrics, self._outbox.add)
        self._driver = Driver(self._path(settings, learned), self._loop)
        generator = random.Random()  # noqa: S311 - draws spread load, they keep no secret
        around = Surroundings(
            loop=self._loop,
            driver=self._driver,
            journal=self._journal,
            dial=Dialer(),
            draws=partial(generator.getrandbits, 64),
            poll_soon=lambda replica: self._send(PollSoon(replica)),
            call_back=lambda url, message_id, body: self._send(CallBack(url, message_id, body)),
            tally=Tally(log=lambda level, text: self._send(Log(level, text))),
        )
        self._gateway = Gateway(settings, around)
        self._ticker = Ticker(self._gateway, self._loop, settings.timers.tick_s, metrics.observe_lag)

    def _path(self, settings: Settings, learned: dict[str, Any] | None) -> Path:
        path = Path(settings.path, self._loop.time())
        if learned is not None:
            try:
                path.restore(learned, self._loop.time())
            except ValueError as error:
                self._send(Log("warning", f"what was learned before is not taken over: {error}"))
        return path

    async def _listen(self, settings: Settings) -> None:
        gateway = self._gateway
        if gateway is None:
            return
        sock = open_port(settings.host, settings.port, "--port")
        self._server = await self._loop.create_server(lambda: ClientConnection(gateway), sock=sock)
        host, port = sock.getsockname()[:2]
        if self._ticker is not None:
            self._ticker.start()
        self._patrol()
        stop_automatic_collection()
        self._send(Ready(host, port, os.getpid()))

    def _patrol(self) -> None:
        """Every half second: what the policies see of the replicas, and have to tell."""
        # First, so that one bug can't end it for good.
        self._patrol_timer = self._loop.call_later(PATROL_EVERY_S, self._patrol)
        if self._driver is not None:
            for notice in self._driver.patrol():
                self._send(Log(notice.level, notice.text))

    def _on_listening(self, task: asyncio.Task[None]) -> None:
        error = task.exception()
        if error is not None:
            self._fail(str(error))

    def _apply(self, plain: dict[str, Any]) -> Applied:
        if self._gateway is None or self._driver is None or self._settings is None:
            return Applied([], "the data process has not started yet")
        try:
            settings = from_plain(plain)
            self._gateway.reconfigure(settings)
        except (TidegateError, ValueError) as error:
            return Applied([], str(error))
        changes = list(self._driver.apply(settings.path).lines)
        if (settings.host, settings.port) != (self._settings.host, self._settings.port):
            changes.append("the data port moves at the next start")
        self._settings = settings
        return Applied(changes)

    def _mark(self, order: SetMark | LiftMark) -> Applied:
        if self._driver is None:
            return Applied([], "the data process has not started yet")
        if isinstance(order, LiftMark):
            return Applied([*self._driver.apply(change.LiftMark(order.kind, order.key)).lines])
        mark = change.SetMark(order.kind, order.key, order.ttl_s, order.reason, order.evidence)
        try:
            return Applied([*self._driver.apply(mark).lines])
        except ValueError as error:
            return Applied([], str(error))

    def _on_parent_gone(self, error: Exception | None) -> None:
        # Without a parent nobody reads the engines or answers operators: finish what runs, and go.
        del error
        self._drain_and_end()

    # ---- the end ----------------------------------------------------------------------------

    def _drain_and_end(self) -> None:
        within_s = self._settings.timers.drain_s if self._settings is not None else 0.0
        self._start_draining(within_s).add_done_callback(lambda _: self._over.set())

    def _start_draining(self, within_s: float) -> asyncio.Task[int]:
        if self._draining is None:
            self._draining = self._loop.create_task(self._drain(within_s))
        return self._draining

    async def _drain(self, within_s: float) -> int:
        """Accept nothing more; how many requests are still open when time is up."""
        gateway = self._gateway
        if gateway is None:
            return 0
        if self._server is not None:
            self._server.close()
        gateway.drain()
        try:
            async with asyncio.timeout(within_s):
                await gateway.emptied()
        except TimeoutError:
            pass
        return gateway.open_requests

    def _tell_drained(self, task: asyncio.Task[int]) -> None:
        self._send(Drained(task.result()))

    def _fail(self, problem: str) -> None:
        self._send(Failed(problem))
        self._over.set()

    def _send(self, message: Up) -> None:
        if self._channel is not None:
            self._channel.send(message)

    def _on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody expected: one exchange suffers, the others go on, and the log has it."""
        loop.default_exception_handler(context)
        error = context.get("exception")
        self._send(Log("error", f"data process: {context.get('message')}: {error!r}"))


def run(channel_fd: int) -> None:
    """Run a data process on uvloop, or on asyncio's own loop where uvloop is missing."""
    factory = importlib.import_module("uvloop").new_event_loop if importlib.util.find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_main(channel_fd))


async def _main(channel_fd: int) -> None:
    await DataProcess().run(channel_fd)


if __name__ == "__main__":
    run(int(sys.argv[1]))
