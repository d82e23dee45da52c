"""The real data process, seen by a parent: it takes over what was learned, and tells what it has learned."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.gateway.test_channel import until
from tests.gateway.test_child import Ear
from tests.gateway.test_parent import SETTINGS
from tidegate.gateway.child import Child
from tidegate.gateway.messages import AskLearned, LiftMark, SetMark, Start
from tidegate.gateway.settings import to_plain
from tidegate.policy.marks import MarkKind
from tidegate.policy.path import Path


class Notes(Ear):
    """Keeps each state that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[dict[str, Any]] = []

    def on_learned(self, state: dict[str, Any]) -> None:
        self.states.append(state)


def learned() -> dict[str, Any]:
    """What a busy hour might leave behind."""
    path = Path(SETTINGS.path, 0.0)
    path.margin.value = 0.8
    for _ in range(40):
        path.upstreams["chat"].replicas[0].first_token.learn(100, 0.5)
    return dict(path.dump(0.0))


def run(state: dict[str, Any] | None) -> Notes:
    """A data process from start to stop, asked once in between."""

    async def main() -> Notes:
        notes = Notes()
        child = await Child.spawn(Start(to_plain(SETTINGS), state), notes)
        child.send(AskLearned())
        await until(lambda: bool(notes.states))
        await child.stop()
        return notes

    return asyncio.run(main())


def test_what_was_learned_before_is_known_again_and_told_when_asked_and_at_the_end() -> None:
    notes = run(learned())
    assert notes.states == [learned(), learned()]
    assert notes.heard == []


@pytest.mark.parametrize("state", [{"nonsense": 1}, {**learned(), "margin": "wide"}])
def test_a_state_that_cannot_be_read_is_left_and_said_so(state: dict[str, Any]) -> None:
    notes = run(state)
    assert notes.states[0] == Path(SETTINGS.path, 0.0).dump(0.0)
    assert len(notes.heard) == 1
    assert "warning what was learned before is not taken over" in notes.heard[0]


def test_marks_are_set_listed_told_kept_and_lifted() -> None:
    async def main() -> None:
        notes = Notes()
        child = await Child.spawn(Start(to_plain(SETTINGS), None), notes)
        assert await child.marks() == []
        done = await child.mark(SetMark(MarkKind.SESSION, "s", 60.0, "abuse", "ticket 7"))
        assert (done.changes, done.problem) == (["session s: marked abuse for 60 s: ticket 7"], "")
        wrong = await child.mark(SetMark(MarkKind.REPLICA, "ghost", 60.0, "abuse", "ticket 7"))
        assert (wrong.changes, wrong.problem) == ([], "no replica is called 'ghost'; there are chat-0")
        marks = await child.marks()
        assert marks is not None
        assert [(each["kind"], each["key"], each["reason"]) for each in marks] == [("session", "s", "abuse")]
        await until(lambda: any("mark set: session s: abuse" in line for line in notes.heard))
        child.send(AskLearned())
        await until(lambda: bool(notes.states))
        assert notes.states[0]["marks"][0]["key"] == "s"
        assert (await child.mark(LiftMark(MarkKind.SESSION, "s"))).changes == ["session s: mark lifted"]
        await child.stop()
        assert (await child.marks(), (await child.mark(LiftMark(MarkKind.SESSION, "s"))).problem) == (
            None,
            "the data process does not answer",
        )

    asyncio.run(main())
