"""Whether a client prefers a job to an answer, and how long it waits for the answer first (RFC 7240)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.wire.header_names import ASYNC, CALLBACK, PREFER
from tidegate.wire.requests import Incoming

_YES, _NO = (b"true", b"1"), (b"false", b"0")


@dataclass(slots=True)
class Preference:
    """A job is wanted."""

    wait_s: float = 0.0
    """The client waits so long for the answer itself; then it takes a job."""
    callback: str | None = None
    """URL that is told when the job has ended."""


def wait_s(incoming: Incoming) -> float:
    """How long the client waits, if need be, for something better than what there is now."""
    return _prefer(incoming)[1] if PREFER in incoming.fields else 0.0


def preference(incoming: Incoming) -> Preference | None:
    """None: the client waits for its answer. Raises ``ValueError`` naming the header that can't be understood."""
    fields = incoming.fields
    is_async, waits_s = _prefer(incoming) if PREFER in fields else (False, 0.0)
    found = Preference(waits_s) if is_async else None
    if ASYNC in fields:
        said = fields[ASYNC].strip().lower()
        if said not in _YES + _NO:
            raise ValueError(f"{ASYNC.decode()} must be true or false")
        found = found or (Preference() if said in _YES else None)
    if CALLBACK in fields:
        if found is None:
            raise ValueError(f"{CALLBACK.decode()} belongs to a job: send Prefer: respond-async with it")
        found.callback = fields[CALLBACK].decode("latin-1").strip()
    return found


def _prefer(incoming: Incoming) -> tuple[bool, float]:
    """Whether a job is wanted, and the seconds to wait first.

    What is unknown or makes no sense in a preference is passed over, as RFC 7240 asks.
    """
    is_async, waits_s = False, 0.0
    given = b",".join([value for name, value in incoming.headers if name == PREFER])
    for each in given.lower().split(b","):
        name, _, value = each.partition(b";")[0].strip().partition(b"=")
        if name.strip() == b"respond-async":
            is_async = True
        elif name.strip() == b"wait" and value.strip(b' "').isdigit():
            waits_s = float(value.strip(b' "')[:9])
    return is_async, waits_s
