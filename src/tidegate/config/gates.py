"""How many requests of one size each gate of a replica lets run at once, and which gate binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.config.pools import group_of, requests_of
from tidegate.config.settings import Settings
from tidegate.config.slot_plan import SlotPlan


@dataclass(frozen=True, slots=True)
class Gates:
    """Requests at once, per gate. None: the gate is open (off, or its figure not known yet)."""

    replica: str
    prompt_tokens: int
    output_tokens: int
    slots: int | None
    sequences: int | None
    limit_at_start: int | None
    limit_at_most: int | None
    fits: bool
    """A request of this size can run on the replica at all."""
    group: int | None = None
    """What its slot group holds at most, the others being idle."""
    group_floor: int | None = None
    """What its slot group is guaranteed."""
    model: int | None = None
    """What its model may run on all its replicas together."""

    def binding(self) -> str | None:
        """The gate that stops first at start; None when all are open."""
        return _least(self._known(self.limit_at_start))

    def _known(self, limit: int | None) -> dict[str, int | None]:
        return {
            "slots": self.slots,
            "sequences": self.sequences,
            "limit": limit,
            "slot group": self.group,
            "model concurrency": self.model,
        }

    def words(self) -> str:
        """One sentence for people."""
        size = f"requests of {self.prompt_tokens} + {self.output_tokens} tokens"
        if not self.fits:
            return f"{self.replica}: {size} never fit here"
        name = self.binding()
        if name is None:
            return f"{self.replica}: no gate binds before the engine has told its capacity"
        shown = {
            "slots": self.slots,
            "sequences": self.sequences,
            "adaptive limit at start": self.limit_at_start,
            "slot group": None if self.group is None else f"{self.group_floor} to {self.group}",
            "model concurrency": self.model,
        }
        known = ", ".join(f"{gate} {figure}" for gate, figure in shown.items() if figure is not None)
        line = f"{self.replica}: the gate that binds is {name}, for {size} at once ({known})"
        if name != "limit":
            return line
        later = _least(self._known(self.limit_at_most))
        return f"{line}; the limit may grow to {self.limit_at_most}, then {later} binds"

    def plain(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "slots": self.slots,
            "sequences": self.sequences,
            "limit_at_start": self.limit_at_start,
            "limit_at_most": self.limit_at_most,
            "group_floor": self.group_floor,
            "group": self.group,
            "model": self.model,
            "fits": self.fits,
            "binds": self.binding(),
        }


def _least(gates: dict[str, int | None]) -> str | None:
    known = {name: figure for name, figure in gates.items() if figure is not None}
    return min(known, key=lambda name: known[name]) if known else None


def gates_of(plan: SlotPlan, settings: Settings, prompt_tokens: int, output_tokens: int) -> Gates:
    """The gates of one replica for requests of one size, each of one sequence."""
    per_request = -(-(prompt_tokens + output_tokens) // plan.slot_tokens)
    slots = plan.slots // per_request if settings.slots.enabled and plan.slots is not None else None
    limit = settings.limits.adaptive
    floor, most = _group_gates(plan, settings, per_request)
    context_fits = plan.context_tokens is None or prompt_tokens + output_tokens <= plan.context_tokens
    return Gates(
        plan.replica,
        prompt_tokens,
        output_tokens,
        slots=slots,
        sequences=plan.sequences,
        limit_at_start=limit.initial if limit.enabled else None,
        limit_at_most=limit.maximum if limit.enabled else None,
        fits=context_fits and slots != 0 and most != 0,
        group=most,
        group_floor=floor,
        model=settings.upstreams[plan.upstream].limits.concurrency,
    )


def _group_gates(plan: SlotPlan, settings: Settings, slots: int) -> tuple[int | None, int | None]:
    group = group_of(settings.pools, plan.upstream, plan.replica)
    if group is None or plan.bytes_per_token is None:
        return None, None
    return requests_of(settings.pools, group, slots * plan.slot_tokens * plan.bytes_per_token)
