"""What a tenant with rates reads on its answers."""

from __future__ import annotations

import hashlib

import pytest

from tests.gateway.stand import WHOLE, Engine, chat, json_answer, post, stand_for, stream_of
from tidegate.gateway.rate_headers import duration, rate_lines
from tidegate.gateway.settings import ApiKey
from tidegate.policy.path_config import PathConfig
from tidegate.policy.quota import QuotaConfig, RateLimits
from tidegate.policy.tenants import TenantConfig, TenantsConfig
from tidegate.testing.virtual_loop import run_virtually

KEYS = (
    ApiKey(sha256=hashlib.sha256(b"sk-a").hexdigest(), tenant="acme"),
    ApiKey(sha256=hashlib.sha256(b"sk-b").hexdigest(), tenant="other"),
)
ACME = PathConfig(tenants=TenantsConfig(named={"acme": TenantConfig(requests_per_minute=2, tokens_per_minute=6000)}))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, b"0ms"),
        (0.12, b"120ms"),
        (1.0, b"1s"),
        (8.64, b"8.64s"),
        (59.5, b"59.5s"),
        (60.0, b"1m0s"),
        (360.4, b"6m0s"),
        (3612.0, b"1h0m12s"),
    ],
)
def test_times_are_written_as_openai_writes_them(seconds: float, text: bytes) -> None:
    assert duration(seconds) == text


def test_only_rates_that_are_bounded_are_told() -> None:
    assert rate_lines(RateLimits(0, 0, 0.0, 90, 30, 40.0)) == (
        b"x-ratelimit-limit-tokens: 90\r\nx-ratelimit-remaining-tokens: 30\r\nx-ratelimit-reset-tokens: 40s\r\n"
    )
    assert b"tokens" not in rate_lines(RateLimits(9, 3, 40.0, 0, 0, 0.0))


def test_answers_and_refusals_tell_what_is_left_and_other_tenants_hear_nothing() -> None:
    async def scenario() -> None:
        with stand_for(Engine([WHOLE]), path=ACME, api_keys=KEYS) as stand:
            first = await stand.ask(post(chat(), headers="authorization: Bearer sk-a\r\n"))
            assert first.status == 200
            assert first.headers[b"x-ratelimit-limit-requests"] == b"2"
            assert first.headers[b"x-ratelimit-remaining-requests"] == b"1"
            assert first.headers[b"x-ratelimit-reset-requests"] in {b"30s", b"29.99s", b"29.98s"}
            assert first.headers[b"x-ratelimit-limit-tokens"] == b"6000"
            await stand.ask(post(chat(), headers="authorization: Bearer sk-a\r\n"))
            refused = await stand.ask(post(chat(), headers="authorization: Bearer sk-a\r\n"))
            assert (refused.status, refused.error["code"]) == (429, "quota_exceeded")
            assert refused.headers[b"x-ratelimit-remaining-requests"] == b"0"
            assert 29 <= int(refused.headers[b"retry-after"]) <= 37
            other = await stand.ask(post(chat(), headers="authorization: Bearer sk-b\r\n"))
            assert not [name for name in other.headers if name.startswith(b"x-ratelimit")]

    run_virtually(scenario())


def test_streams_tell_it_too_and_what_the_engine_says_of_our_own_account_stays_here() -> None:
    async def scenario() -> None:
        path = PathConfig(quota=QuotaConfig(requests_per_minute=9))
        with stand_for(Engine(stream_of("a")), path=path) as stand:
            got = await stand.ask(post(chat(stream=True)))
            assert got.headers[b"x-ratelimit-remaining-requests"] == b"8"
        answer = json_answer({"choices": []}, headers="x-ratelimit-remaining-tokens: 5\r\nx-kept: 1\r\n")
        with stand_for(Engine([answer])) as stand:
            got = await stand.ask(post(chat()))
            assert b"x-ratelimit-remaining-tokens" not in got.headers
            assert got.headers[b"x-kept"] == b"1"

    run_virtually(scenario())
