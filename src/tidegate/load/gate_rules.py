"""Gates: bars that a run is held against. ``acceptance``, ``burst`` and ``linear`` are made here, others in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidegate.load.burst_bars import BURST_BARS, recovers
from tidegate.load.length_line import grows_linearly, must_grow_linearly
from tidegate.load.phase_figures import PhaseFigures
from tidegate.load.plan import Plan
from tidegate.load.rated_bars import E2E, RATED_BARS, RESPONSES, Response, latency_bars
from tidegate.load.step_verdicts import STEP_BARS
from tidegate.load.verdict import Verdict

Rule = Callable[[Sequence[PhaseFigures], Plan], Verdict | None]
"""Of one target's phases; None: the plan was not made for this bar, which is then not in the table."""


@dataclass(frozen=True, slots=True)
class Gates:
    name: str
    rules: tuple[Rule, ...]

    def __add__(self, other: Gates) -> Gates:
        """What stands in both is judged once."""
        return Gates(f"{self.name},{other.name}", tuple(dict.fromkeys(self.rules + other.rules)))


def judge(figures: Sequence[PhaseFigures], gates: Gates, plan: Plan) -> list[Verdict]:
    """Every bar of ``gates``, target by target in the order of ``figures``."""
    targets = list(dict.fromkeys(each.target for each in figures)) or [""]
    found = []
    for target in targets:
        own = [each for each in figures if each.target == target]
        verdicts = [verdict for rule in gates.rules if (verdict := rule(own, plan)) is not None]
        found += [replace(verdict, target=target) for verdict in verdicts] if len(targets) > 1 else verdicts
    return found


def acceptance(response: Response = E2E) -> Gates:
    """SPEC S1-46 to S1-53 with S1-41, and what a ramp and long prompts tell beside them (S1-57, S2-53, S2-54)."""
    name = "acceptance" if response is E2E else f"acceptance@{response.name}"
    return Gates(name, (*latency_bars(response), *RATED_BARS, recovers, *STEP_BARS, grows_linearly))


def burst() -> Gates:
    """The bar of overload: errors < 0.5 % (SPEC C9), and a way back."""
    return Gates("burst", (*BURST_BARS, recovers))


def linear() -> Gates:
    """Only whether latency grows with the prompt in a line (SPEC S2-27), for a run that is about nothing else."""
    return Gates("linear", (must_grow_linearly,))


def built_in() -> dict[str, Gates]:
    """By the name that a user gives."""
    kinds = [acceptance(response) for response in RESPONSES]
    return {gates.name: gates for gates in (*kinds, burst(), linear())}
