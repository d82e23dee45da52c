"""What a rule matches."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.policy.class_rules import ClassRule
from tidegate.policy.request import Request

REQUEST = Request(
    1, "chat", 0.0, 0, max_tokens=200, tenant="acme", path="/v1/completions", headers={"x-team": "Night", "x-empty": ""}
)
BARE = Request(2, "chat", 0.0, 0)


@pytest.mark.parametrize(
    ("conditions", "matches"),
    [
        ({"min_prompt_tokens": 100}, True),
        ({"min_prompt_tokens": 101}, False),
        ({"max_prompt_tokens": 100}, True),
        ({"max_prompt_tokens": 99}, False),
        ({"min_total_tokens": 300}, True),
        ({"min_total_tokens": 301}, False),
        ({"max_total_tokens": 300}, True),
        ({"max_total_tokens": 299}, False),
        ({"path": "/v1/completions"}, True),
        ({"path": "/v1/chat/completions"}, False),
        ({"tenant": "acme"}, True),
        ({"tenant": "acme2"}, False),
        ({"model": "chat"}, True),
        ({"model": "other"}, False),
        ({"header": "X-Team"}, True),
        ({"header": "x-team", "header_value": "night"}, True),
        ({"header": "x-team", "header_value": "day"}, False),
        ({"header": "x-empty"}, True),
        ({"header": "x-none"}, False),
        ({"tenant": "acme", "min_prompt_tokens": 101}, False),
        ({"tenant": "acme", "min_prompt_tokens": 50, "path": "/v1/completions", "header": "x-team"}, True),
    ],
)
def test_all_conditions_must_hold(conditions: dict[str, Any], matches: bool) -> None:
    assert ClassRule(service_class="batch", **conditions).matches(REQUEST, 100) is matches


def test_a_request_without_bound_or_headers_is_its_prompt_alone() -> None:
    assert not ClassRule(service_class="batch", min_total_tokens=101).matches(BARE, 100)
    assert not ClassRule(service_class="batch", header="x-team").matches(BARE, 100)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "needs a condition"),
        ({"min_prompt_tokens": -1}, "at least 0"),
        ({"tenant": "t", "header_value": "v"}, "no header that must have it"),
    ],
)
def test_rules_that_mean_nothing_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassRule(service_class="batch", **wrong)
