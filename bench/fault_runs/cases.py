"""The faults of the table: how each is made and healed, and what was expected before the first run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.fault_runs.llama import LlamaProcess
from tidegate.testing.faults import Fault
from tidegate.testing.upstream_process import UpstreamProcess

Engine = UpstreamProcess | LlamaProcess
OF_ANY_PROCESS = ("kill", "freeze")
"""What can be done to a real engine too."""


@dataclass(frozen=True, slots=True)
class Case:
    """``break_it`` and ``heal`` are called with the process."""

    name: str
    break_it: Callable[[Engine], None]
    heal: Callable[[Engine], None]
    expected: str
    """Written before the first run: time to avoid, client errors, why."""


def _by(fault: Fault, expected: str) -> Case:
    return Case(fault.value, lambda engine: _fail(engine, fault), lambda engine: _fail(engine, Fault.NONE), expected)


def _fail(engine: Engine, fault: Fault) -> None:
    if not isinstance(engine, UpstreamProcess):
        raise TypeError(f"a real engine does not {fault.value} on command")
    engine.fail(fault)


CASES = {
    case.name: case
    for case in (
        Case("kill", lambda it: it.kill(), lambda it: it.start(), "0.4 s; those that ran are cut, the others retried"),
        Case("freeze", lambda it: it.freeze(), lambda it: it.thaw(), "first-byte timeout; 15/s x timeout errors"),
        _by(Fault.REFUSE, "0.4 s; those that ran are cut, the others retried"),
        _by(Fault.HANG, "first-byte timeout; 15/s x timeout errors"),
        _by(Fault.STALL, "gap timeout; 15/s x timeout errors"),
        _by(Fault.CUT, "0.5 s; every stream until then is cut"),
        _by(Fault.RESET, "0.5 s; every stream until then is cut"),
        _by(Fault.CLOSE, "0.4 s; no error: all is retried"),
        _by(Fault.ERROR_500, "0.4 s; no error: all is retried"),
        _by(Fault.BUSY_429, "the limit falls, no breaker; all is retried within the allowance"),
        _by(Fault.SLOW, "as first bytes become slow; some late, no error"),
        _by(Fault.GARBAGE_HTTP, "0.4 s; no error: all is retried"),
        _by(Fault.GARBAGE_BODY, "never: nobody looks into events; broken answers"),
        _by(Fault.ERROR_EVENT, "0.5 s; every stream until then ends with an error"),
        _by(Fault.ENDLESS_HEAD, "first-byte timeout, or 256 KiB of head"),
    )
}
