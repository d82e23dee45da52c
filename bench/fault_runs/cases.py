"""The faults of the table: how each is made and healed, and what was expected before the first run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.testing.faults import Fault
from tidegate.testing.upstream_process import UpstreamProcess


@dataclass(frozen=True, slots=True)
class Case:
    """``break_it`` and ``heal`` are called with the process."""

    name: str
    break_it: Callable[[UpstreamProcess], None]
    heal: Callable[[UpstreamProcess], None]
    expected: str
    """Written before the first run: time to avoid, client errors, why."""


def _by(fault: Fault, expected: str) -> Case:
    return Case(fault.value, lambda upstream: upstream.fail(fault), UpstreamProcess.heal, expected)


CASES = {
    case.name: case
    for case in (
        Case("kill", UpstreamProcess.kill, UpstreamProcess.start, "0.4 s; those that ran are cut, the others retried"),
        Case("freeze", UpstreamProcess.freeze, UpstreamProcess.thaw, "first-byte timeout; 15/s x timeout errors"),
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
