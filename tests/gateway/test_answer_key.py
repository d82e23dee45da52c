"""Which questions are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.gateway.answer_key import answer_key
from tidegate.gateway.call import Call
from tidegate.gateway.routes import CHAT, COMPLETIONS, Route, passed_through
from tidegate.policy.request import Request
from tidegate.wire.body import Body
from tidegate.wire.requests import Incoming

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0}


def key(
    fields: dict[str, Any] | bytes, *, normalises: bool = False, tenant: str = "t", route: Route = CHAT
) -> bytes | None:
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    incoming = Incoming(b"POST", route.path.encode(), [])
    incoming.body = text
    request = Request(1, "m", 0.0, 0, tenant=tenant, streaming=b'"stream": true' in text)
    return answer_key(request, Call(incoming, route, b"id", Body(text)), normalises=normalises)


@pytest.mark.parametrize("normalises", [False, True])
def test_another_tenant_or_path_or_question_has_another_key(normalises: bool) -> None:
    own = key(ASKED, normalises=normalises)
    assert own == key(ASKED, normalises=normalises)
    others = [
        key(ASKED, normalises=normalises, tenant="u"),
        key(ASKED, normalises=normalises, route=COMPLETIONS),
        key({**ASKED, "temperature": 1}, normalises=normalises),
        key({**ASKED, "messages": [{"role": "user", "content": "hel lo"}]}, normalises=normalises),
    ]
    assert own not in others
    assert len(set(others)) == len(others)


@pytest.mark.parametrize(
    "same",
    [
        dict(reversed(ASKED.items())),
        {**ASKED, "user": "someone", "metadata": {"a": "b"}},
        {**ASKED, "messages": [{"content": " hello\n", "role": "user"}]},
        {**ASKED, "stream": False},
    ],
)
def test_what_says_the_same_in_other_bytes_is_the_same_only_when_normalised(same: dict[str, Any]) -> None:
    assert key(same) != key(ASKED)
    assert key(same, normalises=True) == key(ASKED, normalises=True)


def test_streams_and_unknown_paths_have_none() -> None:
    assert key({**ASKED, "stream": True}) is None
    assert key(ASKED, route=passed_through(b"/v1/other")) is None
