"""Digests of a prompt's beginnings: equal as far as two prompts are."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.stand import WHOLE, Engine, chat, post, stand_for
from tidegate.gateway.beginnings import FIRST_BYTES, WHOLE_BYTES, beginnings
from tidegate.gateway.settings import Endpoint
from tidegate.policy.balance.balancer import BalanceConfig
from tidegate.policy.path_config import PathConfig
from tidegate.testing.virtual_loop import run_virtually
from tidegate.wire.body import Body


def body(text: str, **fields: object) -> Body:
    return Body(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **fields}).encode())


def digests(text: str) -> list[int]:
    return [digest for digest, _ in beginnings(body(text), None)]


def test_a_short_prompt_has_none() -> None:
    assert beginnings(body("x" * 400), None) == ()
    assert beginnings(Body(b"{}"), None) == ()


def test_there_is_one_at_every_doubling_the_longest_first_with_its_share() -> None:
    found = beginnings(body("x" * 5000), None)
    text_bytes = body("x" * 5000).text_bytes
    assert [share for _, share in found] == [end / text_bytes for end in (4096, 2048, 1024, 512)]


def test_a_session_stands_for_the_whole_prompt_and_comes_first() -> None:
    with_session = beginnings(body("x" * 600), "alice")
    assert with_session[0][1] == 1.0
    assert with_session[1:] == beginnings(body("x" * 600), None)
    assert beginnings(body("x"), "alice")[0] == with_session[0] != beginnings(body("x"), "bob")[0]


@given(st.integers(0, WHOLE_BYTES), st.integers(0, WHOLE_BYTES))
def test_they_are_equal_up_to_where_prompts_part(common: int, own: int) -> None:
    one, other = "a" * common + "b" * own, "a" * common + "c" * own
    shared = [mine == theirs for mine, theirs in zip(reversed(digests(one)), reversed(digests(other)), strict=True)]
    opening = len('[{"role": "user", "content": "')
    assert sum(shared) == sum(FIRST_BYTES * 2**power <= opening + common or own == 0 for power in range(len(shared)))


def test_the_order_of_fields_and_what_else_is_asked_change_nothing() -> None:
    assert beginnings(body("x" * 900, stream=True, temperature=0.3), None) == beginnings(body("x" * 900), None)


def test_a_legacy_prompt_has_them_too() -> None:
    assert len(beginnings(Body(json.dumps({"prompt": "x" * 1500}).encode()), None)) == 2


ENDPOINTS = [Endpoint(name=name, host="127.0.0.1", port=9000) for name in ("r1", "r2")]


def turns(count: int) -> list[bytes]:
    """A conversation: each prompt is the one before it and a little more."""
    text = "Once upon a time there was a gateway. " * 40
    return [post(chat(messages=[{"role": "user", "content": text + "And then? " * turn}])) for turn in range(count)]


def test_a_conversation_stays_with_the_replica_that_has_read_it() -> None:
    async def scenario() -> None:
        engines = {"r1": Engine([WHOLE]), "r2": Engine([WHOLE])}
        with stand_for(engines) as stand:
            for each in turns(8):
                assert (await stand.ask(each)).status == 200
            asked = sorted(len(engine.requests) for engine in engines.values())
            assert asked == [0, 8]
            assert all(request.prefixes for request in stand.noted.offered)

    run_virtually(scenario())


def test_where_nobody_has_to_choose_none_are_taken() -> None:
    async def scenario() -> None:
        with stand_for({"r1": Engine([WHOLE]), "r2": Engine([WHOLE])}) as stand:
            stand.reload(["r1", "r2"], *ENDPOINTS, path=PathConfig(balance=BalanceConfig(prefix_affinity=False)))
            await stand.ask(turns(1)[0])
            stand.reload(["r1"], *ENDPOINTS[:1])
            await stand.ask(turns(1)[0])
            assert [request.prefixes for request in stand.noted.offered] == [(), ()]

    run_virtually(scenario())
