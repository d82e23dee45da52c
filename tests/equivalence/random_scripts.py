"""Scripts of about fifty events, as Hypothesis draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate

from hypothesis import strategies as st

from tests.equivalence.recording_path import Traits
from tests.equivalence.script import Script
from tests.equivalence.scripts import LIGHT, SMALL_ENGINE
from tidegate.policy.change import Drain
from tidegate.policy.groups import GroupConfig, GroupsConfig, PoolConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.simulate.fault import Fault, FaultKind
from tidegate.simulate.visit import MODEL, Demand

ENGINES = 3
ENGINE = replace(SMALL_ENGINE, max_sequences=3, kv_tokens=4096)
CACHE_KEY = b"k"
SHARED = GroupsConfig(
    pools=(
        PoolConfig(
            name="card",
            budget_bytes=5000,
            groups=(
                GroupConfig(name=MODEL, floor_bytes=2500, cap_bytes=5000, reserve_bytes=250),
                GroupConfig(name=LIGHT, floor_bytes=2500, cap_bytes=5000),
            ),
        ),
    )
)
"""Memory that two models share, less than their engines have together."""


@dataclass(slots=True)
class Draft:
    """A script that grows by one event after the other."""

    script: Script
    demands: list[Demand] = field(default_factory=list)
    traits: dict[str, Traits] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    changes: list[tuple[float, PathConfig | Drain]] = field(default_factory=list)

    def finished(self) -> Script:
        """Nothing goes on for ever: at last every engine works."""
        end = max([demand.at for demand in self.demands] + [fault.at for fault in self.faults], default=0.0) + 1.0
        mended = [
            Fault(at=end, replica=index, kind=kind)
            for index in range(ENGINES)
            for kind in (FaultKind.RESTART, FaultKind.RESUME)
        ]
        return replace(
            self.script,
            demands=self.demands,
            traits=self.traits,
            faults=(*self.faults, *mended),
            changes=tuple(self.changes),
        )


Event = Callable[[Draft, float], None]
"""Adds itself to a draft at a time."""


@st.composite
def calls(draw: st.DrawFn) -> Event:
    tokens, output = draw(st.integers(1, 1500)), draw(st.integers(1, 150))
    demand = Demand(
        index=0,
        at=0.0,
        prompt_tokens=tokens,
        output_tokens=output,
        max_tokens=output + draw(st.sampled_from((0, 200))),
        label="any",
        patience_s=draw(st.floats(0.02, 8.0)),
        retry_delay_s=draw(st.floats(0.0, 2.0)),
        draw=draw(st.integers(0, 2**64 - 1)),
    )
    traits = draw(CLIENT_TRAITS)

    def add(draft: Draft, at: float) -> None:
        index = len(draft.demands)
        draft.demands.append(replace(demand, index=index, at=at))
        draft.traits[f"visit-{index}"] = traits

    return add


CLIENT_TRAITS = st.builds(
    Traits,
    streaming=st.booleans(),
    deadline_s=st.none() | st.floats(0.05, 10.0),
    class_hint=st.sampled_from((None, "batch", "other")),
    upstream=st.sampled_from((None, None, None, LIGHT)),
    session=st.sampled_from((None, "s")),
    sequences=st.sampled_from((1, 1, 2)),
    cache_key=st.sampled_from((None, CACHE_KEY)),
    is_bounded=st.booleans(),
    tells_patience=st.booleans(),
)


@st.composite
def faults(draw: st.DrawFn) -> Event:
    kind, replica = draw(st.sampled_from(FaultKind)), draw(st.integers(0, ENGINES - 1))
    factor = draw(st.sampled_from((1.0, 5.0)))

    def add(draft: Draft, at: float) -> None:
        draft.faults.append(Fault(at=at, replica=replica, kind=kind, factor=factor))

    return add


@st.composite
def changes(draw: st.DrawFn) -> Event:
    drains = draw(st.booleans())
    replica, on = draw(st.integers(0, ENGINES - 1)), draw(st.booleans())
    kept = sorted(draw(st.sets(st.integers(0, ENGINES - 1), min_size=1)))
    queue = QueueConfig(max_requests=draw(st.sampled_from((2, 2000))))

    def add(draft: Draft, at: float) -> None:
        config = draft.script.configured(engines=kept, config=PathConfig(queue=queue))
        draft.changes.append((at, Drain(f"r{replica}", on=on) if drains else config))

    return add


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    events = draw(st.lists(calls() | calls() | calls() | faults() | changes(), min_size=40, max_size=60))
    gaps = draw(st.lists(st.floats(0.0, 0.3), min_size=len(events), max_size=len(events)))
    draft = Draft(
        Script(
            engines=(replace(ENGINE, notices_aborts=False), ENGINE, ENGINE),
            demands=[],
            upstreams={ENGINES - 1: LIGHT},
            groups=draw(st.sampled_from((GroupsConfig(), SHARED))),
            abort_grace_s=draw(st.sampled_from((0.4, 2.0))),
            stored=(CACHE_KEY,),
        )
    )
    for event, at in zip(events, accumulate(gaps), strict=True):
        event(draft, at)
    return draft.finished()
