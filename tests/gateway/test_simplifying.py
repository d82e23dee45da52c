"""What the ladder leaves out of a body, and that the rest keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

from tidegate.gateway.simplifying import altered
from tidegate.policy.decisions import Alteration
from tidegate.wire.body import Body


def simplified(alteration: Alteration, **fields: Any) -> dict[str, Any]:
    body = Body(json.dumps(fields).encode())
    found: dict[str, Any] = json.loads(body.edited(altered(body, alteration)))
    return found


def said(*roles: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": f"{index}"} for index, role in enumerate(roles)]


def test_a_bound_stands_where_the_client_has_it() -> None:
    assert simplified(Alteration(5), prompt="p") == {"prompt": "p", "max_tokens": 5}
    both = simplified(Alteration(5), prompt="p", max_completion_tokens=99)
    assert both == {"prompt": "p", "max_completion_tokens": 5, "max_tokens": 5}


def test_tools_go_and_what_is_not_there_is_not_missed() -> None:
    assert simplified(Alteration(drop_tools=True), prompt="p", tools=[1], tool_choice="auto", n=2) == {
        "prompt": "p",
        "n": 2,
    }


def test_instructions_stay_and_what_a_tool_returned_does_not_stand_without_its_call() -> None:
    messages = said("system", "user", "assistant", "tool", "user", "developer", "assistant", "user")
    kept = simplified(Alteration(keep_messages=3), messages=messages)["messages"]
    assert [each["role"] for each in kept] == ["system", "user", "developer", "assistant", "user"]
    kept = simplified(Alteration(keep_messages=4), messages=messages)["messages"]
    assert [each["role"] for each in kept] == ["system", "user", "developer", "assistant", "user"]
    assert len(simplified(Alteration(keep_messages=99), messages=messages)["messages"]) == 8
    assert simplified(Alteration(keep_messages=3), prompt="p") == {"prompt": "p"}
