"""From the sections of a plan file to phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as FilePath

from tidegate.config.origin import Path
from tidegate.config.problem import Problem, suggestion
from tidegate.errors import ConfigError
from tidegate.load.arrival_times import POISSON, ArrivalTimes, Drawn, Regular
from tidegate.load.phase import Kind, Phase
from tidegate.load.plan_options import PlanOptions
from tidegate.load.plan_sections import PhaseSection, PlanSection, RateSection, SpikeSection
from tidegate.load.plans.known_traffic import replay_plan
from tidegate.load.plans.mixes import with_overlong
from tidegate.load.rate_curve import Piece, RateCurve, constant, day, ramp, spike
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.recipe import Recipe

WAYS = ("rate_per_s", "users", "steps", "replay")


class PhaseMaker:
    """Collects what is wrong; phases are only sound where nothing is."""

    def __init__(self, plan: PlanSection, recipes: dict[str, Recipe], options: PlanOptions, folder: FilePath) -> None:
        self.problems: list[Problem] = []
        self._plan = plan
        self._recipes = recipes
        self._options = options
        self._folder = folder

    def phases(self) -> tuple[Phase, ...]:
        found = [
            phase for place, section in enumerate(self._plan.phases) for phase in self._made(section, ("phases", place))
        ]
        names = [phase.name for phase in found]
        for place, section in enumerate(self._plan.phases):
            if names.count(section.name) > 1:
                self._tell(("phases", place, "name"), f"another phase is called {section.name!r} too")
        return tuple(found)

    def _tell(self, path: Path, message: str, *, at_key: bool = False) -> None:
        self.problems.append(Problem(path, message, at_key=at_key))

    def _made(self, section: PhaseSection, path: Path) -> list[Phase]:
        given = [way for way in WAYS if getattr(section, way) is not None]
        if len(given) != 1:
            found = f", found {' and '.join(given)}" if given else ""
            self._tell(path, f"needs one of {', '.join(WAYS)}{found}")
            return []
        before = len(self.problems)
        self._check(section, given[0], path)
        recipes = self._sent(section, path) if given[0] != "replay" else ()
        if len(self.problems) > before:
            return []
        ways: dict[str, Callable[[], list[Phase]]] = {
            "rate_per_s": lambda: [self._open(section, recipes, path)],
            "users": lambda: [self._closed(section, recipes, section.users or 1, section.name)],
            "steps": lambda: self._steps(section, recipes),
            "replay": lambda: self._replayed(section, path),
        }
        return ways[given[0]]()

    def _check(self, section: PhaseSection, way: str, path: Path) -> None:
        has_pieces = section.rate_per_s is not None and section.rate_per_s.pieces is not None
        if way == "replay" or has_pieces:
            if section.duration_s is not None:
                what = "its pieces say" if has_pieces else "the file says"
                self._tell((*path, "duration_s"), f"leave it out: {what} how long the phase is")
        elif section.duration_s is None:
            self._tell((*path, "duration_s"), "is required")
        if section.count is not None and way != "users":
            self._tell((*path, "count"), "goes with users only", at_key=True)
        if way == "replay" and section.send is not None:
            self._tell((*path, "send"), "leave it out: the file says what is sent", at_key=True)
        if way != "replay" and section.send is None:
            self._tell((*path, "send"), "is required: the name of a workload")

    def _sent(self, section: PhaseSection, path: Path) -> tuple[Recipe, ...]:
        found = []
        for name, weight in (section.send or {}).items():
            if name in self._recipes:
                found.append(replace(self._recipes[name], weight=weight))
            elif name not in self._plan.workloads:
                near = suggestion(name, self._plan.workloads) or f"; known: {', '.join(self._plan.workloads) or 'none'}"
                self._tell((*path, "send"), f"no workload is called {name!r}{near}")
        mixed = tuple(found)
        if section.over_long_share > 0:
            mixed = with_overlong(mixed, replace(self._options, overlong_share=section.over_long_share))
        return tuple(self._options.fitted(recipe) for recipe in mixed)

    def _open(self, section: PhaseSection, recipes: tuple[Recipe, ...], path: Path) -> Phase:
        options, rate = self._options, section.rate_per_s or RateSection()
        meant = self._curve(rate, section.duration_s or 0.0, (*path, "rate_per_s"))
        curve = meant.scaled(options.scale, options.time_scale)
        window = None
        if rate.spike is not None:
            window = (options.duration(rate.spike.window_s[0]), options.duration(rate.spike.window_s[1]))
        return Phase(
            name=section.name,
            kind=Kind(section.kind or ("burst" if window else "load")),
            source=Blend(name=section.name, recipes=recipes, arrivals=_arrivals(curve, section.gaps)),
            duration_s=curve.duration_s,
            rate_per_s=curve.mean_per_s,
            spike=window,
        )

    def _curve(self, rate: RateSection, duration_s: float, path: Path) -> RateCurve:
        shapes = [name for name in ("at", "ramp", "day", "pieces") if getattr(rate, name) is not None]
        if len(shapes) != 1 or (rate.spike is not None and rate.at is None):
            self._tell(path, "give a number, or one of at (with spike, if wanted), ramp, day, pieces")
            return constant(1.0, 1.0)
        if rate.at is not None:
            return (
                constant(rate.at, duration_s)
                if rate.spike is None
                else self._spiked(rate.at, rate.spike, duration_s, path)
            )
        if rate.ramp is not None:
            return self._checked(ramp(rate.ramp[0], rate.ramp[1], duration_s), path)
        if rate.day is not None:
            return day(rate.day.off_peak_per_s, rate.day.peak_per_s, duration_s)
        pieces = [
            Piece(each.for_s, each.from_per_s, each.from_per_s if each.to_per_s is None else each.to_per_s)
            for each in rate.pieces or ()
        ]
        return self._checked(RateCurve(tuple(pieces)), path)

    def _checked(self, curve: RateCurve, path: Path) -> RateCurve:
        if curve.peak_per_s > 0:
            return curve
        self._tell(path, "nothing is ever sent: give a rate above 0 somewhere")
        return constant(1.0, 1.0)

    def _spiked(self, rate_per_s: float, given: SpikeSection, duration_s: float, path: Path) -> RateCurve:
        begin_s, end_s = given.window_s
        if begin_s < end_s <= duration_s:
            return spike(rate_per_s, given.factor, (begin_s, end_s), duration_s)
        self._tell((*path, "spike", "window_s"), f"must begin before it ends, within the phase's {duration_s:g} s")
        return constant(1.0, 1.0)

    def _closed(
        self, section: PhaseSection, recipes: tuple[Recipe, ...], users: int, name: str, kind: str = "load"
    ) -> Phase:
        options = self._options
        count = options.users(users)
        return Phase(
            name=name,
            kind=Kind(section.kind or kind),
            source=Blend(name=name, recipes=tuple(recipe.for_users(count) for recipe in recipes)),
            duration_s=options.duration(section.duration_s or 0.0),
            users=count,
            count=None if section.count is None else options.runs(section.count),
        )

    def _steps(self, section: PhaseSection, recipes: tuple[Recipe, ...]) -> list[Phase]:
        counts = {self._options.users(users): users for users in section.steps or ()}
        return [
            self._closed(section, recipes, users, f"{section.name}-{count}", "step") for count, users in counts.items()
        ]

    def _replayed(self, section: PhaseSection, path: Path) -> list[Phase]:
        try:
            plan = replay_plan(str(self._folder / (section.replay or "")), self._options)
        except ConfigError as error:
            for problem in error.problems:
                self._tell((*path, "replay"), problem)
            return []
        return [replace(plan.phases[0], name=section.name, kind=Kind(section.kind or "load"))]


def _arrivals(curve: RateCurve, gaps: str | float) -> ArrivalTimes:
    if gaps == "even":
        return Regular(curve)
    return Drawn(curve, POISSON if gaps == "poisson" else float(gaps))
