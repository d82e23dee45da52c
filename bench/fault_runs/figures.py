"""What one run of a fault shows: the figures of the table, and what each of them means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.fault_runs.load import Seen

PROBES = 3
"""Requests within a second that still count as probes: a half-open breaker lets so many through."""
WINDOW_S = 1.0
ENDS = ("ok", "late", "degraded", "shed", "error", "broken", "unanswered")


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt that the gateway began on a replica."""

    replica: str
    at: float


@dataclass(slots=True)
class Figures:
    """Times in seconds; None: it did not come to pass while we looked."""

    fault: str
    replicas: int
    requests: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    running_at_fault: int = 0
    """Requests that ran on the replica when the fault came."""
    avoided_s: float | None = None
    relapses: int = 0
    back_s: float | None = None
    worked_again_s: float | None = None
    longest_s: float = 0.0
    permit_leaks: int = 0
    left_open: int = 0
    data_process_ends: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    """Requests that did not end well, as their clients and as the gateway saw them."""

    @property
    def client_errors(self) -> int:
        return sum(self.ends.get(end, 0) for end in ("error", "broken", "unanswered"))


DEFINITIONS = """\
 avoids   from the fault until the first second in which the gateway sends the replica no traffic, which is more than
          3 requests in a second: so many are a half-open breaker's probes (of real engines, which get few: any)
 again    how often it got traffic again later, though nothing was healed
 back     from the healing until the replica has got more than 3 requests within a second again (of real engines: one)
 works    from the healing until the last failed request was sent: afterwards every request succeeded
 errors   requests whose client got a typed error: a 5xx, or an error as the last event of a stream
 broken   answers that were cut, garbled, or had words missing or twice, and nothing said so
 shed     refused with 429 for load, with a time to come back
 late     complete, but the first byte of a stream took more than 1 s
 degraded answered by the ladder, and labelled so
 none     no answer at all within 40 s, or a connection that closed without one
 at fault requests that ran on the replica when the fault came
 longest  the longest that any client waited for the end of its answer
 leaks    permits held past every deadline of theirs; requests or permits open when all was over; ends of the data
          process"""


def traffic_times(sent: Iterable[Sent], replica: str, probes: int = PROBES) -> list[float]:
    """When it was sent requests that are more than ``probes`` in a second."""
    times = sorted(each.at for each in sent if each.replica == replica)
    return [at for index, at in enumerate(times) if index >= probes and at - times[index - probes] <= WINDOW_S]


def spells(traffic: list[float], from_at: float, to_at: float) -> list[tuple[float, float]]:
    """First and last moment of each spell of traffic between the two; a second without any parts them."""
    found: list[tuple[float, float]] = []
    for at in traffic:
        if not from_at <= at <= to_at:
            continue
        if found and at - found[-1][1] < WINDOW_S:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found


def avoided_s(traffic: list[float], from_at: float, healed_at: float) -> float | None:
    """Until the first second without traffic. None: there was none before it was healed."""
    first = spells(traffic, from_at, healed_at)[:1]
    last = first[0][1] if first and first[0][0] - from_at < WINDOW_S else from_at
    return None if healed_at - last < WINDOW_S else last - from_at


def relapses(traffic: list[float], from_at: float, healed_at: float) -> int:
    """How often it got traffic again, though nothing was healed."""
    found = spells(traffic, from_at, healed_at)
    return len([first for first, _ in found if first - from_at >= WINDOW_S])


def back_s(traffic: list[float], healed_at: float) -> float | None:
    after = [at for at in traffic if at > healed_at + WINDOW_S / 10]
    return after[0] - healed_at if after else None


def worked_again_s(seen: list[Seen], healed_at: float) -> float:
    """0.0: nothing that was sent after the healing failed."""
    failed = [each.sent_at for each in seen if each.end not in ("ok", "late", "degraded") and each.sent_at > healed_at]
    return max(failed, default=healed_at) - healed_at


FROM_A_ROW = ("replica", "attempts", "outcome", "refused", "waited_for", "admitted_at", "arrived_at", "closed_at")


def failures(seen: list[Seen], rows: list[dict[str, Any]], broken_at: float) -> list[dict[str, Any]]:
    """``at_s``: from the fault until it was sent."""
    row_of = {row["request_id"]: row for row in rows}
    return [
        {
            "request_id": each.request_id,
            "at_s": round(each.sent_at - broken_at, 3),
            "streaming": each.streaming,
            "end": each.end,
            "code": each.code,
            "status": each.status,
            **{name: row_of.get(each.request_id, {}).get(name) for name in FROM_A_ROW},
        }
        for each in seen
        if each.end not in ("ok", "late", "degraded")
    ]


def count(figures: Figures, seen: list[Seen]) -> None:
    figures.requests = len(seen)
    figures.ends = dict(Counter(each.end for each in seen))
    figures.codes = dict(Counter(each.code for each in seen if each.code))
    figures.longest_s = max((each.ended_at - each.sent_at for each in seen), default=0.0)


def attempts(rows: list[dict[str, Any]], offset_s: float, other_of: dict[str, str]) -> list[Sent]:
    """What the gateway sent, from its rows: the last attempt by its own time, an earlier one (which failed, and was
    therefore on the other replica) by the request's arrival. ``offset_s``: added to Unix time it gives monotonic."""
    sent = []
    for row in rows:
        arrived_at = row["arrived_unix_s"] + offset_s
        if row["replica"] is None or not row["attempts"]:
            continue
        sent.append(Sent(row["replica"], arrived_at + max(0.0, row["admitted_at"] - row["arrived_at"])))
        if row["attempts"] > 1:
            sent.append(Sent(other_of.get(row["replica"], row["replica"]), arrived_at))
    return sent


def table(all_figures: list[Figures], predictions: dict[str, str]) -> str:
    head = ["fault", "replicas", "requests", "avoids", "again", "back", "works", "errors", "broken", "none", "shed"]
    head += ["late", "degraded", "at fault", "longest", "leaks", "expected"]
    rows = [head]
    rows += [[*_cells(each), predictions.get(each.fault, "")] for each in all_figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if index in (0, len(head) - 1) else cell.rjust(width)
                 for index, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _cells(each: Figures) -> list[str]:
    ends = [str(each.ends.get(end, 0)) for end in ("error", "broken", "unanswered", "shed", "late", "degraded")]
    leaks = each.permit_leaks + each.left_open + each.data_process_ends
    return [
        each.fault,
        str(each.replicas),
        str(each.requests),
        _seconds(each.avoided_s) if each.replicas > 1 else "-",
        str(each.relapses) if each.replicas > 1 else "-",
        _seconds(each.back_s) if each.replicas > 1 else "-",
        _seconds(each.worked_again_s),
        *ends,
        str(each.running_at_fault),
        _seconds(each.longest_s),
        str(leaks),
    ]


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"
