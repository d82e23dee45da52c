"""Watches the replicas: sets aside who is an outlier or makes no progress, takes back, and tells what has changed.

Looks at most once per ``outliers.window_s``, after a reading or when the driver asks (about once a second): nothing of
it happens on a request's way. The table of marks is what counts; a replica carries only the time until which it is
under one, so that placement asks for no table. A mark that an operator lifts, or that has run out, therefore frees its
replica at the next look at the latest; so does an automatic one whose replica moves again or has started anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.policy.breaker import State
from tidegate.policy.change import LiftMark, SetMark
from tidegate.policy.ejections import Ejections
from tidegate.policy.health import Health
from tidegate.policy.marks import MOST_TTL_S, NO_PROGRESS, Mark, MarkKind, Marks
from tidegate.policy.notices import Notice
from tidegate.policy.outliers import Outliers
from tidegate.policy.path_config import PathConfig
from tidegate.policy.replica import Replica
from tidegate.policy.upstream import Upstream
from tidegate.policy.watchdog import Watchdog

_REPLICA, _CLOSED = MarkKind.REPLICA, State.CLOSED


class Oversight:
    __slots__ = (
        "_ejections",
        "_generations",
        "_looks_at",
        "_outliers",
        "_panics",
        "_upstreams",
        "_watchdog",
        "health",
        "marks",
    )

    def __init__(self, marks: Marks, upstreams: Mapping[str, Upstream], config: PathConfig) -> None:
        self.marks = marks
        self.health = Health(upstreams, config.health)
        self._upstreams = upstreams
        self._ejections = Ejections(marks, config.ejections)
        self._outliers = Outliers(self._ejections, config.outliers)
        self._watchdog = Watchdog(self._ejections, config.watchdog)
        self._looks_at = 0.0
        self._generations: dict[str, int] = {}
        """Of each replica's breaker, as it was last told."""
        self._panics: set[str] = set()

    def reconfigure(self, config: PathConfig, now: float) -> None:
        """Take what a reload says; call when the replicas are there."""
        self._ejections.config, self._outliers.config = config.ejections, config.outliers
        self._watchdog.config = config.watchdog
        self.health.reconfigure(config.health)
        names = {replica.name for upstream in self._upstreams.values() for replica in upstream.replicas}
        self._ejections.keep(names)
        self._outliers.keep(names)
        self._generations = {name: told for name, told in self._generations.items() if name in names}
        self.follow_marks(now)

    def look(self, now: float) -> None:
        """After a reading: judge everybody, unless that was done a moment ago."""
        if now < self._looks_at:
            return
        self._looks_at = now + self._outliers.config.window_s
        self.follow_marks(now)
        for upstream in self._upstreams.values():
            self._outliers.judge(upstream.replicas, now)
            self._watchdog.look(upstream.replicas, now)
            self._tell(upstream, now)

    def patrol(self, now: float) -> list[Notice]:
        """As ``look``; returns what there is to log since the last time."""
        self.look(now)
        return self.marks.take_notices(now)

    def note_streams(self, last_read_at: Mapping[str, float]) -> None:
        """When each replica's streams last showed a token."""
        for upstream in self._upstreams.values():
            for replica in upstream.replicas:
                replica.motion.at = max(replica.motion.at, last_read_at.get(replica.name, 0.0))

    def order(self, change: SetMark | LiftMark, now: float) -> list[str]:
        """What an operator or the lens wants. Returns a line if that changed anything.

        Raises:
            ValueError: a time that is no time, or longer than a day, or a replica that does not exist.
        """
        kind, key = change.kind, change.key
        if isinstance(change, LiftMark):
            lines = [f"{kind.value} {key}: mark lifted"] if self.marks.remove(kind, key) else []
        else:
            self._check(change)
            mark = Mark(kind, key, change.reason, now + change.ttl_s, change.evidence)
            self.marks.add(mark, now)
            lines = [f"{kind.value} {key}: marked {change.reason} for {change.ttl_s:g} s: {change.evidence}"]
        if kind is _REPLICA:
            self.follow_marks(now)
        return lines

    def _check(self, change: SetMark) -> None:
        if not 0.0 < change.ttl_s <= MOST_TTL_S:
            raise ValueError(f"ttl_s lies above 0 and at most at {MOST_TTL_S:.0f} (a day), not at {change.ttl_s:g}")
        if change.kind is _REPLICA:
            names = [replica.name for upstream in self._upstreams.values() for replica in upstream.replicas]
            if change.key not in names:
                raise ValueError(f"no replica is called {change.key!r}; there are {', '.join(names) or 'none'}")

    def follow_marks(self, now: float) -> None:
        """Bring the replicas to what the table says of them."""
        for upstream in self._upstreams.values():
            for replica in upstream.replicas:
                if replica.marked_until or len(self.marks):
                    upstream.moved |= self._follow(replica, self.marks.find(_REPLICA, replica.name, now), now)

    def _follow(self, replica: Replica, mark: Mark | None, now: float) -> bool:
        """True: it may serve again, if only in a panic."""
        if mark is not None and self._is_refuted(mark, replica):
            self.marks.remove(_REPLICA, replica.name)
            mark = None
        if mark is not None:
            was_banned = replica.is_banned
            replica.set_aside(mark.until, is_banned=mark.is_by_order)
            return was_banned and not mark.is_by_order
        if replica.marked_until:
            replica.end_mark(now)
            return True
        return False

    def _is_refuted(self, mark: Mark, replica: Replica) -> bool:
        """What has happened since takes the ground from an automatic mark."""
        since, motion = self._ejections.since(replica), replica.motion
        if mark.is_by_order or not since:
            return False
        return motion.began_at > since or (mark.reason == NO_PROGRESS and motion.at > since)

    def _tell(self, upstream: Upstream, now: float) -> None:
        """Log lines for breakers that moved, and for a panic that begins or is over."""
        for replica in upstream.replicas:
            breaker = replica.breaker
            if breaker.generation != self._generations.get(replica.name, 0):
                self._generations[replica.name] = breaker.generation
                level = "info" if breaker.state is _CLOSED else "warning"
                self.marks.notices.add("breaker", f"breaker of {replica.name}: {breaker.state.value}", level)
        is_in_panic = upstream.is_in_panic(now)
        if is_in_panic is not (upstream.name in self._panics):
            if is_in_panic:
                self._panics.add(upstream.name)
                text = "most replicas are kept away; what the others have no room for goes to these all the same"
                self.marks.notices.add("panic", f"panic in {upstream.name}: {text}", "error")
            else:
                self._panics.discard(upstream.name)
                self.marks.notices.add("panic", f"panic in {upstream.name} is over")

    def view(self, now: float) -> dict[str, object]:
        """In figures: which models are in a panic, and the marks."""
        return {
            "panics": {name: upstream.is_in_panic(now) for name, upstream in self._upstreams.items()},
            **self.marks.view(now),
        }
