"""What a phase sends: words, nonces, prefixes, sessions, bounds."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.load.arrival_times import Drawn
from tidegate.load.ask import Ask
from tidegate.load.plan_options import PlanOptions
from tidegate.load.rate_curve import constant
from tidegate.load.source import Source
from tidegate.load.workloads.blend import Blend
from tidegate.load.workloads.filler import NONCE_WORDS
from tidegate.load.workloads.length_draws import Fixed, Uniform
from tidegate.load.workloads.overlong import REFUSAL, overlong
from tidegate.load.workloads.recipe import Conversation, Nonce, Recipe, SharedPrefix
from tidegate.load.workloads.together import Together
from tidegate.load.workloads.vocabulary import VOCABULARY

PLAIN = Recipe(label="plain", prompt=Uniform(20, 60), output=Uniform(8, 32))
TALK = Recipe(
    label="talk",
    prompt=Fixed(12),
    output=Fixed(10),
    prefix=SharedPrefix(tokens=30, count=2),
    conversation=Conversation(Fixed(4), open_sessions=5),
)


def sent(recipe: Recipe, count: int = 40, seed: int = 0, name: str = "phase", salt: str = "") -> list[Ask]:
    return [*islice(Blend(name=name, recipes=(recipe,), salt=salt).asks(seed), count)]


def body(ask: Ask) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b'{"model":"m"' + ask.body)
    return found


def contents(ask: Ask) -> list[str]:
    return [message["content"] for message in body(ask)["messages"]]


def words(ask: Ask) -> list[str]:
    return " ".join(contents(ask)).split()


def test_a_body_is_a_chat_with_usage_wanted_and_nothing_left_to_chance() -> None:
    ask = sent(PLAIN, 1)[0]
    found = body(ask)
    assert found["model"] == "m"
    assert found["temperature"] == 0
    assert found["stream"] is True
    assert found["stream_options"] == {"include_usage": True}
    assert found["max_tokens"] == ask.max_tokens
    assert [message["role"] for message in found["messages"]] == ["user"]


def test_a_prompt_has_as_many_words_as_tokens_are_meant() -> None:
    for recipe in (PLAIN, replace(PLAIN, prefix=SharedPrefix(25)), replace(PLAIN, nonce=Nonce.NONE)):
        for ask in sent(recipe):
            assert len(words(ask)) == ask.prompt_tokens
            assert set(words(ask)) <= set(VOCABULARY)


@settings(max_examples=25, deadline=None)
@given(
    prompt=st.integers(1, 400),
    output=st.integers(1, 400),
    prefix=st.integers(0, 300),
    context=st.integers(80, 600),
    nonce=st.sampled_from(Nonce),
)
def test_what_does_not_fit_is_cut_and_something_is_always_said(
    prompt: int, output: int, prefix: int, context: int, nonce: Nonce
) -> None:
    recipe = Recipe(
        label="x",
        prompt=Fixed(prompt),
        output=Fixed(output),
        prefix=SharedPrefix(prefix) if prefix else None,
        context_tokens=context,
        nonce=nonce,
    )
    for ask in sent(recipe, 3):
        assert len(words(ask)) == ask.prompt_tokens
        assert ask.max_tokens is not None
        assert ask.max_tokens >= 1
        assert ask.prompt_tokens + ask.max_tokens <= max(context, ask.max_tokens + NONCE_WORDS + 1)
        assert all(contents(ask))


def test_a_nonce_at_the_start_leaves_no_two_beginnings_alike_and_one_at_the_end_leaves_them() -> None:
    recipe = replace(PLAIN, prompt=Fixed(40), is_same=True, prefix=SharedPrefix(30))
    first = [words(ask) for ask in sent(replace(recipe, nonce=Nonce.START))]
    last = [words(ask) for ask in sent(replace(recipe, nonce=Nonce.END))]
    never = [words(ask) for ask in sent(replace(recipe, nonce=Nonce.NONE))]
    assert len({tuple(each[:NONCE_WORDS]) for each in first}) == len(first)
    assert len({tuple(each[NONCE_WORDS:]) for each in first}) == 1
    assert len({tuple(each[:-NONCE_WORDS]) for each in last}) == 1
    assert len({tuple(each[-NONCE_WORDS:]) for each in last}) == len(last)
    assert len({tuple(each) for each in never}) == 1


def test_nonces_of_neighbours_differ_in_their_first_word() -> None:
    firsts = [words(ask)[0] for ask in sent(PLAIN, 200)]
    assert all(one != other for one, other in pairwise(firsts))


def test_prefixes_are_shared_by_their_share_of_the_requests() -> None:
    recipe = replace(PLAIN, nonce=Nonce.END, prefix=SharedPrefix(tokens=50, count=3, share=0.5))
    found = Counter(contents(ask)[0] for ask in sent(recipe, 600) if len(contents(ask)) == 2)
    assert len(found) == 3
    assert found.total() == pytest.approx(300, rel=0.15)
    assert min(found.values()) > 60


def test_a_turn_contains_all_turns_before_it_under_one_session() -> None:
    sessions: dict[str, list[Ask]] = {}
    for ask in sent(TALK, 60):
        sessions.setdefault(ask.session, []).append(ask)
        assert ("x-tidegate-session", ask.session) in ask.headers
    whole = [turns for turns in sessions.values() if len(turns) == 4]
    assert len(whole) > 5
    for turns in whole:
        for earlier, later in pairwise(turns):
            before, after = body(earlier)["messages"], body(later)["messages"]
            assert after[: len(before)] == before
            assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]
            assert later.prompt_tokens == earlier.prompt_tokens + 10 + 12
            assert later.index - earlier.index >= 5
        assert len(words(turns[-1])) == turns[-1].prompt_tokens


def test_a_conversation_that_would_grow_beyond_the_context_gives_way_to_a_new_one() -> None:
    recipe = replace(TALK, conversation=Conversation(Fixed(50), open_sessions=1), most_prompt_tokens=120)
    found = sent(recipe, 40)
    assert max(ask.prompt_tokens for ask in found) <= 120
    assert len({ask.session for ask in found}) > 5


def test_no_two_users_of_a_closed_loop_hold_the_same_conversation() -> None:
    assert TALK.for_users(20) == replace(TALK, conversation=Conversation(Fixed(4), open_sessions=40))
    assert TALK.for_users(2) is TALK
    assert PLAIN.for_users(20) is PLAIN


def test_the_share_of_streams_and_the_further_fields_are_as_given() -> None:
    found = sent(replace(PLAIN, stream_share=0.25, more=',"ignore_eos":true', wants_json=True), 400)
    assert sum(ask.is_stream for ask in found) == pytest.approx(100, rel=0.25)
    for ask in found:
        assert body(ask)["stream"] is ask.is_stream
        assert body(ask)["ignore_eos"] is True
        assert body(ask)["response_format"] == {"type": "json_object"}


def test_a_given_text_stands_in_the_prompt_as_it_is() -> None:
    text = 'He said "no\\yes"\nand left: é'
    ask = sent(replace(PLAIN, text=text, nonce=Nonce.NONE), 1)[0]
    assert contents(ask) == [text]


def test_kinds_come_by_their_weights() -> None:
    blend = Blend(name="x", recipes=(replace(PLAIN, weight=3.0), replace(TALK, weight=1.0)))
    found = Counter(ask.label for ask in islice(blend.asks(0), 2000))
    assert found["plain"] == pytest.approx(1500, rel=0.06)
    assert blend.title == "75% plain: 20-60 in, 8-32 out; 25% talk: 12 in, 10 out"


def test_over_long_prompts_are_half_just_above_the_context_and_half_far_above() -> None:
    found = sent(PlanOptions(context_tokens=1000).fitted(overlong(1000, 1.0, is_answered=False)), 200)
    assert all(ask.prompt_tokens > 1000 and ask.refusal == REFUSAL for ask in found)
    assert sum(ask.prompt_tokens <= 1101 for ask in found) == pytest.approx(100, rel=0.25)
    assert sum(ask.prompt_tokens >= 2000 for ask in found) == pytest.approx(100, rel=0.25)
    assert overlong(1000, 1.0, is_answered=True).refusal is None


def test_another_salt_changes_the_nonces_and_nothing_else() -> None:
    for one, other in zip(sent(PLAIN), sent(PLAIN, salt="b"), strict=True):
        assert words(one)[:NONCE_WORDS] != words(other)[:NONCE_WORDS]
        assert words(one)[NONCE_WORDS:] == words(other)[NONCE_WORDS:]
        assert (one.max_tokens, one.prompt_tokens, one.due_s) == (other.max_tokens, other.prompt_tokens, other.due_s)


def test_another_seed_or_phase_has_other_words() -> None:
    first = [words(ask) for ask in sent(PLAIN, 20)]
    assert first == [words(ask) for ask in sent(PLAIN, 20)]
    assert all(one != other for one, other in zip(first, map(words, sent(PLAIN, 20, seed=1)), strict=True))
    assert all(one != other for one, other in zip(first, map(words, sent(PLAIN, 20, name="other")), strict=True))


def test_sources_together_are_one_line_in_the_order_of_time() -> None:
    parts = tuple(
        Blend(name=f"x/{name}", recipes=(replace(PLAIN, tenant=name),), arrivals=Drawn(constant(rate, 20.0)))
        for name, rate in (("a", 5.0), ("b", 10.0))
    )
    together = Together(parts)
    found = [*together.asks(3)]
    assert [ask.index for ask in found] == [*range(len(found))]
    assert [ask.due_s for ask in found] == sorted(ask.due_s for ask in found)
    assert Counter(ask.tenant for ask in found) == {
        name: sum(1 for _ in part.asks(3)) for name, part in zip("ab", parts, strict=True)
    }
    assert together.salted("z").parts[0].salt == "z"
    assert " + " in together.title
    assert Together((parts[0], parts[0])).title.startswith("2 x (5/s")


def test_a_source_is_picklable_and_says_the_same_in_another_process() -> None:
    source: Source = Together((Blend(name="x", recipes=(PLAIN, TALK), arrivals=Drawn(constant(50.0, 2.0), 0.5)),))
    script = (
        "import pickle, sys; source = pickle.loads(sys.stdin.buffer.read()); "
        "sys.stdout.buffer.write(pickle.dumps([*source.asks(7)]))"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=pickle.dumps(source),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        assert pickle.loads(done.stdout) == [*source.asks(7)]
