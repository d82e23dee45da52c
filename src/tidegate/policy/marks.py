"""Negative notes on a session, user, tenant, source, model or replica: who, why, on what evidence, until when.

Every mark expires (R5). Keys of ``scopes`` that time out ``trigger_count`` times within ``window_s``, or in a row, are
marked high-risk by themselves (SPEC S0-41, S0-42, S0-46, S0-47, C5, C6), a timeout being what the outcome table says
counts against the client. A source that sends nothing but prompts that can never fit is blocked for a while (SPEC
S0-106). Replicas are marked by ``Outliers`` and ``Watchdog``, anything by an operator.

One table for all of them, so that there is one place to list, keep over a restart and lift from. How a key is shown
outside the admin API is configured (SPEC S0-52).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.policy.notices import Notice, Notices
from tidegate.policy.request import Request
from tidegate.policy.shown_keys import ShowSource, digest, shown_source
from tidegate.policy.strikes import MOST_KEYS, Strikes

MOST_SHOWN = 50
"""Marks that a view lists, the latest first: each is a label set of a metric."""
MOST_TTL_S = 86_400.0
"""A mark that somebody sets lasts no longer: what is forgotten ends by itself within a day."""


class MarkKind(StrEnum):
    # By value, which is C; Enum's own hash is a Python function.
    __hash__ = str.__hash__

    SESSION = "session"
    USER = "user"
    TENANT = "tenant"
    SOURCE = "source"
    MODEL = "model"
    REPLICA = "replica"


class TriggerMode(StrEnum):
    WINDOWED = "windowed"
    CONSECUTIVE = "consecutive"


HIGH_RISK, OVER_LENGTH, OUTLIER, NO_PROGRESS = "high_risk", "over_length", "outlier", "no_progress"
AUTOMATIC = frozenset({HIGH_RISK, OVER_LENGTH, OUTLIER, NO_PROGRESS})
"""Reasons that policies give; any other is an operator's."""
BY_OPERATOR = "operator"
"""Label of all other reasons in the counts."""


def _check_scopes(name: str, scopes: tuple[MarkKind, ...]) -> None:
    if MarkKind.REPLICA in scopes or len(set(scopes)) != len(scopes):
        raise ValueError(f"{name} names each of session, user, tenant, source, model at most once; no replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLengthConfig:
    """Prompts that can never fit, however long they wait (SPEC S0-39, S0-106)."""

    enabled: bool = True
    scopes: tuple[MarkKind, ...] = (MarkKind.SOURCE,)
    """Kinds of keys that they count against. An answer that ends well takes all of a key's back."""
    count: int = 20
    """So many within the window, with no good answer in between, block the key."""
    window_s: float = 60.0
    block_s: float = 60.0
    """How long the block lasts."""

    def __post_init__(self) -> None:
        if self.count < 1 or self.window_s <= 0 or self.block_s <= 0:
            raise ValueError(f"marks.over_length needs count >= 1 and positive times: {self}")
        _check_scopes("marks.over_length.scopes", self.scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarksConfig:
    enabled: bool = True
    scopes: tuple[MarkKind, ...] = (MarkKind.SESSION, MarkKind.USER)
    """Kinds of keys that timeouts count against. A source may stand for many people behind one address, and a model
    for all its users: both are left to who asks for them (SPEC S0-42, C6)."""
    trigger_mode: TriggerMode = TriggerMode.WINDOWED
    """``windowed``: so many within the window. ``consecutive``: in a row, a good answer takes all of them back
    (SPEC C5)."""
    trigger_count: int = 5
    window_s: float = 60.0
    high_risk_s: float = 30.0
    """How long an automatic mark lasts: S0-54 asks for an end and names none."""
    over_length: OverLengthConfig = field(default=OverLengthConfig())
    show_source: ShowSource = ShowSource.IP
    """A client's address in logs and metrics: as it is, as its network (/24, /48), or as a digest (SPEC S0-52)."""
    mask: bool = False
    """Show sessions and users as digests in logs and metrics."""

    def __post_init__(self) -> None:
        if self.trigger_count < 1 or self.window_s <= 0 or self.high_risk_s <= 0:
            raise ValueError(f"marks need trigger_count >= 1 and positive times: {self}")
        _check_scopes("marks.scopes", self.scopes)


@dataclass(frozen=True, slots=True)
class Mark:
    kind: MarkKind
    key: str
    reason: str
    until: float
    evidence: str

    @property
    def is_by_order(self) -> bool:
        """No policy has set it."""
        return self.reason not in AUTOMATIC


Key = tuple[MarkKind, str]

_REPLICA, _CONSECUTIVE = MarkKind.REPLICA, TriggerMode.CONSECUTIVE


class Marks:
    """The table. Bounded: the oldest automatic mark goes when it is full, an operator's only when there is none."""

    __slots__ = ("_ended", "_lengths", "_marks", "_set", "_timeouts", "config", "is_counting", "notices", "on_clients")

    def __init__(self, config: MarksConfig) -> None:
        self.config = config
        self.notices = Notices()
        """For the log: marks that were set and ended, and what others add."""
        self.is_counting = False
        """Some key has strikes: good answers may matter."""
        self.on_clients = 0
        """Marks on anything but replicas: only then does an arriving request have to be looked at."""
        self._marks: OrderedDict[Key, Mark] = OrderedDict()
        self._timeouts = Strikes()
        self._lengths = Strikes()
        self._set: Counter[Key] = Counter()
        self._ended: Counter[Key] = Counter()

    def __len__(self) -> int:
        return len(self._marks)

    # ---- the table --------------------------------------------------------------------------

    def add(self, mark: Mark, now: float) -> None:
        """Set ``mark``, in place of any other on its key."""
        self._put(mark)
        self._set[mark.kind, _label(mark.reason)] += 1
        line = f"mark set: {self._named(mark)} for {mark.until - now:.0f} s: {mark.evidence}"
        self.notices.add("mark_set", line, "warning")

    def remove(self, kind: MarkKind, key: str) -> bool:
        """Lift a mark. False: there is none."""
        mark = self._marks.get((kind, key))
        if mark is not None:
            self._end(mark, "lifted")
        return mark is not None

    def find(self, kind: MarkKind, key: str | None, now: float) -> Mark | None:
        """The mark on this key if it still holds."""
        if key is None:
            return None
        mark = self._marks.get((kind, key))
        if mark is not None and mark.until <= now:
            self._end(mark, "over")
            return None
        return mark

    def on(self, request: Request, now: float) -> Mark | None:
        """The first mark that holds on any key of a request."""
        for kind in (MarkKind.SESSION, MarkKind.USER, MarkKind.TENANT, MarkKind.SOURCE, MarkKind.MODEL):
            mark = self.find(kind, key_of(kind, request), now)
            if mark is not None:
                return mark
        return None

    def expire(self, now: float) -> None:
        """End what is over, and forget strikes that are too old to count."""
        for mark in [mark for mark in self._marks.values() if mark.until <= now]:
            self._end(mark, "over")
        self._timeouts.expire(self.config.window_s, now)
        self._lengths.expire(self.config.over_length.window_s, now)
        self.is_counting = len(self._timeouts) + len(self._lengths) > 0

    def live(self, now: float) -> list[Mark]:
        """Those that hold, the oldest first."""
        self.expire(now)
        return [*self._marks.values()]

    def take_notices(self, now: float) -> list[Notice]:
        """What there is to tell since the last time; marks that are over end here at the latest."""
        self.expire(now)
        return self.notices.take()

    def _put(self, mark: Mark) -> None:
        key = (mark.kind, mark.key)
        if self._marks.pop(key, None) is not None:
            self.on_clients -= mark.kind is not _REPLICA
        elif len(self._marks) >= MOST_KEYS:
            automatic = (each for each in self._marks.values() if not each.is_by_order)
            self._end(next(automatic, None) or next(iter(self._marks.values())), "displaced by newer ones")
        self._marks[key] = mark
        self.on_clients += mark.kind is not _REPLICA

    def _end(self, mark: Mark, why: str) -> None:
        del self._marks[mark.kind, mark.key]
        self.on_clients -= mark.kind is not _REPLICA
        self._ended[mark.kind, _label(mark.reason)] += 1
        self.notices.add("mark_ended", f"mark ended: {self._named(mark)}: {why}")

    # ---- what marks by itself ---------------------------------------------------------------

    def note_timeout(self, request: Request, now: float) -> None:
        """A request timed out: a strike against its keys."""
        for kind in self.config.scopes:
            key = key_of(kind, request)
            if key is not None:
                self.strike(kind, key, now)

    def strike(self, kind: MarkKind, key: str, now: float) -> Mark | None:
        """Count one timeout against a key; the mark, if this was one too many."""
        config = self.config
        if not config.enabled:
            return None
        self.is_counting = True
        count = self._timeouts.add((kind, key), config.trigger_count, config.window_s, now)
        if not count:
            return None
        in_a_row = " in a row" if config.trigger_mode is _CONSECUTIVE else ""
        evidence = f"{count} timeouts{in_a_row} within {config.window_s:g} s"
        mark = Mark(kind, key, HIGH_RISK, now + config.high_risk_s, evidence)
        self.add(mark, now)
        return mark

    def note_over_length(self, request: Request, now: float) -> None:
        """A request was refused for it can never fit. Under a block nothing is counted, so that it ends."""
        config = self.config.over_length
        if not (self.config.enabled and config.enabled):
            return
        for kind in config.scopes:
            key = key_of(kind, request)
            if key is None or self.find(kind, key, now) is not None:
                continue
            self.is_counting = True
            count = self._lengths.add((kind, key), config.count, config.window_s, now)
            if count:
                evidence = f"{count} requests within {config.window_s:g} s that can never fit"
                self.add(Mark(kind, key, OVER_LENGTH, now + config.block_s, evidence), now)

    def note_success(self, request: Request) -> None:
        """An answer ended well. Call only while ``is_counting``."""
        if self.config.trigger_mode is _CONSECUTIVE:
            for kind in self.config.scopes:
                self._timeouts.clear((kind, key_of(kind, request) or ""))
        for kind in self.config.over_length.scopes:
            self._lengths.clear((kind, key_of(kind, request) or ""))

    # ---- shown and kept ---------------------------------------------------------------------

    def shown(self, kind: MarkKind, key: str) -> str:
        """A key as logs and metrics may show it."""
        if kind is MarkKind.SOURCE:
            return shown_source(key, self.config.show_source)
        if self.config.mask and kind in (MarkKind.SESSION, MarkKind.USER):
            return digest(key)
        return key

    def _named(self, mark: Mark) -> str:
        return f"{mark.kind.value} {self.shown(mark.kind, mark.key)}: {mark.reason}"

    def view(self, now: float) -> dict[str, object]:
        """In figures, and the latest ones by what may be shown of them."""
        live = self.live(now)
        kinds = Counter(mark.kind.value for mark in live)
        return {
            "marks": len(live),
            "mark_kinds": {kind.value: kinds[kind.value] for kind in MarkKind},
            "marks_set": _nested(self._set),
            "marks_ended": _nested(self._ended),
            "marks_shown": [
                {
                    "kind": mark.kind.value,
                    "key": self.shown(mark.kind, mark.key),
                    "reason": _label(mark.reason),
                    "remaining_s": mark.until - now,
                }
                for mark in live[: -MOST_SHOWN - 1 : -1]
            ],
            "notices_lost": self.notices.lost,
        }

    def dump(self, now: float) -> list[dict[str, object]]:
        """Remaining times instead of ends, so that another clock can restore them."""
        return [
            {
                "kind": m.kind.value,
                "key": m.key,
                "reason": m.reason,
                "remaining_s": m.until - now,
                "evidence": m.evidence,
            }
            for m in self.live(now)
        ]

    def restore(self, state: list[dict[str, object]], now: float) -> None:
        for row in state:
            remaining_s = row["remaining_s"]
            if isinstance(remaining_s, int | float) and remaining_s > 0:
                kind = MarkKind(str(row["kind"]))
                self._put(Mark(kind, str(row["key"]), str(row["reason"]), now + remaining_s, str(row["evidence"])))


def key_of(kind: MarkKind, request: Request) -> str | None:
    """What a mark of ``kind`` on this request would be on; None where it names nothing of the kind."""
    match kind:
        case MarkKind.SESSION:
            return request.session
        case MarkKind.USER:
            return request.user
        case MarkKind.TENANT:
            return request.tenant
        case MarkKind.SOURCE:
            return request.source
        case MarkKind.MODEL:
            return request.upstream
        case _:
            return None


def _label(reason: str) -> str:
    return reason if reason in AUTOMATIC else BY_OPERATOR


def _nested(counts: Counter[Key]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (kind, reason), count in counts.items():
        nested.setdefault(kind, {})[reason] = count
    return nested
