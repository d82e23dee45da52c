"""What ``tidegate serve`` runs: engines, readings, the data process and the admin port, in one parent.

This is where gateway and fleet meet. Order of start: admin port, engines (a vLLM comes up while the rest serves),
data process, readings; of the end: data process (drained), readings, engines, admin port.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any

from tidegate.cli.replicas import Replicas
from tidegate.cli.sleeping import Sleeping
from tidegate.cli.start_log import address_line, plan_lines, ready_lines
from tidegate.config import Settings as Config
from tidegate.config.flags import Overrides
from tidegate.config.live import LiveLayer
from tidegate.config.origin import DEFAULT, dotted
from tidegate.config.reload import Change, diff, shown
from tidegate.config.section import plain
from tidegate.config.tree import leaves
from tidegate.errors import ConfigError, TidegateError
from tidegate.gateway.admin import admin_app
from tidegate.gateway.admin_answers import Reloaded
from tidegate.gateway.admin_server import AdminServer
from tidegate.gateway.audit import Audit
from tidegate.gateway.composition import compose, keep_started, plans_told, pool_lines
from tidegate.gateway.file_watch import watch
from tidegate.gateway.messages import LiftMark, Ready, SetMark
from tidegate.gateway.parent import Parent, Say, unix_minus_monotonic_s
from tidegate.gateway.polling import Polling
from tidegate.gateway.ports import open_port
from tidegate.lens.counted import Snapshot
from tidegate.lens.exposition import ParentFacts
from tidegate.lens.ring import Ring
from tidegate.policy.reading import Reading

KILLED = 130
"""Exit status after a second Ctrl-C, as shells show a program that was interrupted."""


class Serving:
    """One run of the service; implements ``gateway.admin.Control``.

    ``read_config`` reads the configuration afresh, with what operators set laid over it, and raises ConfigError;
    ``say`` writes a log line.
    """

    def __init__(self, read_config: Callable[[Overrides], Config], say: Say) -> None:
        self._read_config = read_config
        self._say = say
        self._live = LiveLayer()
        self._config = config = read_config(self._live.overrides())
        self.audit = Audit(say, time.time)
        self._stopping = asyncio.Event()
        self._orders: asyncio.Queue[Callable[[], Coroutine[Any, Any, object]]] = asyncio.Queue()
        self._swapping = asyncio.Lock()
        self._status = 0
        self._ready: Ready | None = None
        self._is_announced = False
        self._warned: set[str] = set()
        self.ring = Ring(config.lens.ring_records if config.lens.enabled else 0)
        self.polling = Polling(self._on_reading)
        self.replicas = Replicas(os.environ, say, self._on_replicas_changed, self._on_engine_state)
        self._parent = Parent(compose(config, {}, os.environ), self.ring, say, self.polling.poll_soon)

    @property
    def facts(self) -> ParentFacts:
        """Part of ``Control``."""
        return self._parent.facts

    async def run(self) -> int:
        """Serve until a signal; the exit status. Raises TidegateError when it cannot start."""
        server = self._config.server
        # The data process opens this one, but much later: a model is not loaded for a port that is taken.
        open_port(server.host, server.port, "--port").close()
        sock = open_port(server.admin_host, server.admin_port, "--admin-port")
        self._admin = AdminServer(admin_app(self, server.admin_tokens), sock)
        self._admin.start()
        self._catch_signals()
        try:
            if await self._unless_stopped(self._open()):
                await self._serve()
        finally:
            await self._close()
        return self._status

    async def _open(self) -> None:
        """Everything up to the data port."""
        config = self._config
        self._warn(config.warnings)
        await self.replicas.recognise(config)
        self._warn(pool_lines(config, self.replicas.told, config.slots.overcommit))
        for line in plan_lines(config, plans_told(config, self.replicas.told).values()):
            self._say("info", line)
        await self.replicas.start(config)
        self._say("info", "Starting inference server...")
        self._parent.settings = compose(config, self.replicas.told, os.environ)
        for replica in self.replicas.coming_up:
            self._parent.observe(replica, Reading(at=asyncio.get_running_loop().time(), ready=False, error="it starts"))
        self._ready = await self._parent.start()
        self._say("info", address_line(config, self._ready, self._admin.port))
        self.facts.config_loaded_at = time.time()
        self.polling.follow(self.replicas.sources)

    def _warn(self, lines: Iterable[str]) -> None:
        """Each line once, however often its cause is met."""
        for line in lines:
            if line not in self._warned:
                self._warned.add(line)
                self._say("warning", line)

    async def _serve(self) -> None:
        """Until a signal comes, or a part that must not end does."""
        parts = [self._parent.watch(), self._parent.keep(), self._carry_out_orders(), self.replicas.watch()]
        if self._config.file is not None:
            parts.append(watch(self._config.file, self.reload))
        tasks = [asyncio.create_task(part) for part in parts]
        stop = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (stop, *tasks):
                task.cancel()
            await asyncio.gather(stop, *tasks, return_exceptions=True)

    async def _close(self) -> None:
        """End everything that was started, whatever state it is in."""
        open_requests = await self._parent.stop(self._config.server.drain_s)
        if open_requests:
            self._say("warning", f"{open_requests} requests were still running and have been cut off")
        await self.polling.close()
        await self.replicas.close()
        await self._admin.close()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
        self._say("info", "Stopped.")

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run ``work`` to its end, or give it up at a signal; whether it came to its end."""
        task = asyncio.create_task(work)
        stop = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            task.result()
            return True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return False

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._on_stop_signal)
        loop.add_signal_handler(signal.SIGTERM, self._on_stop_signal)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._orders.put_nowait(partial(self.reload, "SIGHUP")))

    def _on_stop_signal(self) -> None:
        if self._stopping.is_set():
            self._say("warning", "Killed.")
            self._status = KILLED
            self._parent.kill()
            self.replicas.kill()
            return
        drain_s = self._config.server.drain_s
        self._say("info", f"Stopping: running requests have {drain_s:g} s; once more (Ctrl-C) kills at once")
        self._stopping.set()

    async def _carry_out_orders(self) -> None:
        """One after the other: what signals and engines ask for outside of any task."""
        while True:
            order = await self._orders.get()
            await order()

    def _on_replicas_changed(self) -> None:
        """An engine told its capacity late, or runs again at another address."""
        self._orders.put_nowait(self._swap_replicas)

    def _on_engine_state(self, replica: str, problem: str) -> None:
        """An engine of our own ended or serves again: known at once, and not at its next reading."""
        self.facts.engine_restarts = self.replicas.restarts
        if problem:
            self.polling.take(replica, Reading(at=asyncio.get_running_loop().time(), ready=False, error=problem))
        else:
            self.polling.poll_soon(replica)

    async def _swap_replicas(self) -> None:
        async with self._swapping:
            # What would have refused the start cannot end a service that runs.
            problem = await self._swap(self._config, "clamp")
        if problem:
            self._say("error", f"what the engines told could not be taken into use: {problem}")

    async def _swap(self, config: Config, overcommit: str) -> str:
        """Put ``config`` and what is known of its engines into force; why that failed, or ""."""
        try:
            self._warn(pool_lines(config, self.replicas.told, overcommit))
            settings = compose(config, self.replicas.told, os.environ)
        except ConfigError as error:
            return str(error)
        applied = await self._parent.apply(settings)
        for line in applied.changes:
            self._say("info", f"changed: {line}")
        if not applied.problem:
            self.polling.follow(self.replicas.sources)
        return applied.problem

    def _on_reading(self, replica: str, reading: Reading) -> None:
        self._parent.observe(replica, reading)
        if not self._is_announced and not self.not_ready_because():
            self._is_announced = True
            self._orders.put_nowait(self._announce)

    async def _announce(self) -> None:
        """Slots and addresses, once the first replica is ready."""
        if self._ready is not None:
            view = await self.view()
            for line in ready_lines(self._config, self._ready, view):
                self._say("info", line)

    # gateway.admin.Control

    def unix_minus_monotonic_s(self) -> float:
        """Part of ``Control``."""
        return unix_minus_monotonic_s()

    def not_ready_because(self) -> str:
        """Part of ``Control``."""
        if self._stopping.is_set():
            return "shutting down"
        if not self._parent.is_running:
            return "the data process is not running yet"
        readings = self.polling.latest
        if any(reading.ready for reading in readings.values()):
            return ""
        reasons = [f"{name}: {reading.error or 'not ready'}" for name, reading in readings.items()]
        return f"no replica is ready ({'; '.join(reasons) or 'none has been read yet'})"

    def config(self) -> dict[str, Any]:
        """Part of ``Control``: every key in force, and where it came from when somebody set it."""
        values = {dotted(path): shown(self._config, path, value) for path, value in leaves(plain(self._config))}
        origins = {path: self._config.origin(path) for path, _ in leaves(plain(self._config))}
        set_by = {dotted(path): each.place() for path, each in origins.items() if each is not DEFAULT}
        file = None if self._config.file is None else str(self._config.file)
        return {"file": file, "warnings": list(self._config.warnings), "values": values, "origins": set_by}

    async def view(self) -> dict[str, Any] | None:
        """Part of ``Control``."""
        return await self._parent.view()

    async def snapshot(self) -> Snapshot | None:
        """Part of ``Control``."""
        return await self._parent.snapshot()

    async def drain(self, replica: str, on: bool, who: str) -> bool:
        """Part of ``Control``."""
        done = await self._parent.drain_replica(replica, on)
        if done:
            self.audit.note(who, "drain", [f"{replica} {'drains' if on else 'takes requests again'}"])
        return done

    async def marks(self) -> list[dict[str, Any]] | None:
        """Part of ``Control``."""
        return await self._parent.marks()

    async def mark(self, order: SetMark | LiftMark, who: str) -> Reloaded:
        """Part of ``Control``."""
        applied = await self._parent.mark(order)
        problems = [applied.problem] if applied.problem else []
        if applied.changes or problems:
            self.audit.note(who, "mark", applied.changes, problems)
        return Reloaded(applied.changes, problems)

    async def sleep(self, replica: str, on: bool, who: str) -> str:
        """Part of ``Control``."""
        engine = self.replicas.sleeper(replica)
        if engine is None:
            return f"{replica} is no vLLM of ours with can_sleep set; see upstreams.<name>.engine"
        draining = partial(self.drain, who=who)
        problem = await Sleeping(draining, self.view, self._config.server.drain_s).order(replica, engine, on)
        self.polling.poll_soon(replica)
        self.audit.note(who, "sleep", [f"{replica} {'sleeps' if on else 'is awake'}"], [problem] if problem else [])
        return problem

    async def reload(self, who: str = "file") -> Reloaded:
        """Part of ``Control``; also at SIGHUP and when the file changes."""
        async with self._swapping:
            try:
                others = self._read_config({})
                live, overtaken = self._live.without_overtaken(others)
                changes, problems = await self._take(live, self._read_config(live.overrides()))
            except (ConfigError, TidegateError) as error:
                overtaken, changes, problems = [], [], _problems_of(error)
        self.facts.config_is_current = not problems
        for problem in problems:
            self._say("error", f"reload refused, the old configuration stays: {problem}")
        if not problems:
            self.facts.config_loaded_at = time.time()
            self._say("info", f"reloaded: {len(changes)} keys differ")
        lines = [change.line() for change in changes]
        lines += [f"{dotted(path)}: has changed below the admin API's value, which is gone" for path in overtaken]
        if lines or problems:
            self.audit.note(who, "reload", lines, problems)
        return Reloaded(lines, problems)

    async def change(self, patch: Mapping[str, Any] | None, who: str, *, is_dry: bool) -> Reloaded:
        """Part of ``Control``."""
        async with self._swapping:
            try:
                live = LiveLayer() if patch is None else self._live.patched(patch, self._read_config({}))
                config = self._read_config(live.overrides())
                changes, problems = diff(self._config, config), []
                problems = [f"{dotted(path)}: is read at the start only" for path in live.needing_restart()]
                if not is_dry and not problems:
                    changes, problems = await self._take(live, config)
            except (ConfigError, TidegateError) as error:
                changes, problems = [], _problems_of(error)
        lines = [change.line() for change in changes]
        if not is_dry:
            self.audit.note(who, "config", lines, problems)
        return Reloaded([] if problems else lines, problems)

    async def _take(self, live: LiveLayer, config: Config) -> tuple[list[Change], list[str]]:
        """Swap ``config`` in, made with ``live`` over all else; what differs, and why that could not be."""
        changes = diff(self._config, config)
        if not changes:
            self._live = live
            return [], []
        in_force = keep_started(self._config, config)
        if not in_force.upstreams:
            return [], ["no upstream would be left"]
        await self.replicas.recognise(in_force)
        problem = await self._swap(in_force, in_force.slots.overcommit)
        if problem:
            await self.replicas.recognise(self._config)
            return [], [problem]
        self._config, self._live = in_force, live
        return changes, []


def _problems_of(error: Exception) -> list[str]:
    return error.problems if isinstance(error, ConfigError) else [str(error)]
