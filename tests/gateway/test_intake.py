"""Which class a call is given by what it is and says."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from tests.gateway.stand import WHOLE, Engine, chat, post, stand_for
from tidegate.gateway.settings import ApiKey
from tidegate.policy.class_rules import ClassRule
from tidegate.policy.classes import ClassesConfig
from tidegate.policy.path_config import PathConfig
from tidegate.testing.virtual_loop import run_virtually

RULES = (
    ClassRule(service_class="batch", header="X-Team", header_value="night"),
    ClassRule(service_class="long", path="/v1/completions"),
    ClassRule(service_class="batch", tenant="crawler"),
    ClassRule(service_class="other", min_total_tokens=5000),
)
PATH = PathConfig(classes=ClassesConfig(rules=RULES))
KEYS = tuple(ApiKey(sha256=sha256(b"sk-" + name.encode()).hexdigest(), tenant=name) for name in ("crawler", "people"))
PEOPLE = "authorization: Bearer sk-people\r\n"


@pytest.mark.parametrize(
    ("body", "path", "headers", "service_class"),
    [
        (chat(), "/v1/chat/completions", PEOPLE, "interactive"),
        (chat(), "/v1/chat/completions", f"{PEOPLE}x-team: night\r\n", "batch"),
        (chat(), "/v1/chat/completions", f"{PEOPLE}x-team: day\r\n", "interactive"),
        ({"model": "m", "prompt": "hello"}, "/v1/completions", PEOPLE, "long"),
        (chat(), "/v1/chat/completions", "authorization: Bearer sk-crawler\r\n", "batch"),
        (chat(max_tokens=6000), "/v1/chat/completions", PEOPLE, "other"),
        (chat(service_tier="flex"), "/v1/chat/completions", PEOPLE, "batch"),
        (chat(service_tier="auto"), "/v1/chat/completions", PEOPLE, "interactive"),
        (chat(service_tier="priority"), "/v1/chat/completions", PEOPLE, "interactive"),
        (chat(), "/v1/chat/completions", f"{PEOPLE}x-tidegate-class: sheddable\r\n", "batch"),
        (
            chat(service_tier="flex"),
            "/v1/chat/completions",
            f"{PEOPLE}x-tidegate-class: interactive\r\n",
            "interactive",
        ),
    ],
)
def test_rules_come_first_then_what_the_client_says_then_length(
    body: dict[str, Any], path: str, headers: str, service_class: str
) -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), path=PATH, api_keys=KEYS) as stand:
            got = await stand.ask(post(body, path, headers))
            assert got.status == 200
            assert stand.rows[0].service_class == service_class
            read = stand.noted.offered[0].headers
            assert read == ({"x-team": headers.split("x-team: ")[1].strip()} if "x-team" in headers else {})

    run_virtually(main())


def test_without_rules_no_header_is_read_for_them() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            await stand.ask(post(chat(), headers="x-team: night\r\n"))
            assert stand.noted.offered[0].headers is None
            assert stand.noted.offered[0].path == "/v1/chat/completions"

    run_virtually(main())
