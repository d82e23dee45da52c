"""Requests as no sound client sends them (SPEC S2-28): each is answered or refused in words; nothing crashes or hangs.

Codes are those of docs/reasons.md. Where the engine decides, both an answer and a 4xx are right, and a 5xx is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tidegate.load.ask import CHAT, Refusal
from tidegate.load.workloads.abnormal_case import AbnormalCase, either, refused
from tidegate.load.workloads.ask_writer import STREAM
from tidegate.load.workloads.filler import Filler
from tidegate.load.workloads.overlong import REFUSAL
from tidegate.simulate.streams import stream

ANSWER_TOKENS = 16
EMPTY = refused("empty_input")
NO_JSON = refused("invalid_json", "invalid_chars")
WRONG_TYPE = refused("invalid_json", "invalid_value")
BAD_CHARACTERS = refused("invalid_chars")
TAIL = f',"max_tokens":{ANSWER_TOKENS}{STREAM}}}'.encode()


def corpus(context_tokens: int | None) -> tuple[AbnormalCase, ...]:
    """Over-long ones only where it is known what that is."""
    return (*_empty(), *_no_json(), *_wrong_types(), *_characters(), *_unusual(), *_sizes(), *_overlong(context_tokens))


def cases_by_code() -> dict[str, AbnormalCase]:
    """By code of the refusal one request that may get it, best one that can get no other; none of over-long ones, which
    depend on the model."""
    refused_cases = [case for case in corpus(None) if case.refusal is not None and not case.refusal.may_answer]
    found: dict[str, AbnormalCase] = {}
    for case in sorted(refused_cases, key=lambda each: len(each.refusal.codes) if each.refusal else 0):
        for code in case.refusal.codes if case.refusal else ():
            found.setdefault(code, case)
    return found


def said(content: Any) -> bytes:
    return _messages([{"role": "user", "content": content}])


def _messages(messages: Any) -> bytes:
    return b',"messages":' + json.dumps(messages).encode() + TAIL


def _with(fields: str) -> bytes:
    """A sound question with further fields, as JSON text."""
    return f',"messages":[{{"role":"user","content":"Say hello."}}],{fields}{STREAM}}}'.encode()


def _cases(group: str, refusal: Refusal | None, bodies: dict[str, bytes]) -> Iterator[AbnormalCase]:
    return (AbnormalCase(name=name, group=group, body=body, refusal=refusal) for name, body in bodies.items())


def _empty() -> Iterator[AbnormalCase]:
    yield from _cases(
        "empty",
        EMPTY,
        {
            "no-messages": b"}",
            "empty-list": _messages([]),
            "messages-null": _messages(None),
            "empty-text": said(""),
            "white-space": said(" \n\t  \r\n"),
            "empty-parts": said([{"type": "text", "text": ""}]),
            "empty-in-turn": _messages([{"role": "system", "content": ""}, {"role": "user", "content": "  "}]),
        },
    )


def _no_json() -> Iterator[AbnormalCase]:
    yield from _cases(
        "no-json",
        NO_JSON,
        {
            "cut": b',"messages":[{"role":"user","content":"hel',
            "comma-at-end": b',"messages":[{"role":"user","content":"hello"},]}',
            "single-quotes": b",'messages':[]}",
            "two-objects": said("hello") + b'{"model":"x"}',
            "not-a-number": _with('"temperature":NaN').replace(b',"temperature":0', b""),
            "no-end-of-text": b',"messages":"' + b"a" * 4096,
            "deep": b',"x":' + b"[" * 100_000,
        },
    )


def _wrong_types() -> Iterator[AbnormalCase]:
    yield from _cases(
        "wrong-type",
        WRONG_TYPE,
        {
            "max-tokens-text": _with('"max_tokens":"ten"'),
            "max-tokens-part": _with('"max_tokens":1.5'),
            "max-tokens-negative": _with('"max_tokens":-5'),
            "stream-text": _with('"max_tokens":8,"n":1').replace(b'"stream":true', b'"stream":"yes"'),
            "stream-options-list": _with('"max_tokens":8').replace(b'{"include_usage":true}', b"[]"),
            "n-zero": _with('"max_tokens":8,"n":0'),
            "n-huge": _with('"max_tokens":8,"n":100000'),
            "temperature-negative": _with('"max_tokens":8').replace(b'"temperature":0', b'"temperature":-1'),
        },
    )
    yield from _cases(
        "wrong-type",
        either(),
        {
            "messages-text": _messages("hello"),
            "messages-number": _messages(7),
            "message-no-role": _messages([{"content": "hello"}]),
            "role-unknown": _messages([{"role": "wizard", "content": "hello"}]),
            "content-number": said(7),
            "temperature-text": _with('"max_tokens":8').replace(b'"temperature":0', b'"temperature":"hot"'),
            "temperature-huge": _with('"max_tokens":8').replace(b'"temperature":0', b'"temperature":1e30'),
            "part-of-no-type": said([{"type": "smell", "smell": "smoke"}]),
        },
    )
    deadline = (("x-tidegate-deadline-ms", "soon"),)
    header = refused("invalid_header")
    yield AbnormalCase(
        name="deadline-no-number",
        group="wrong-type",
        body=said("Say hello."),
        refusal=Refusal(header.statuses, header.codes, may_answer=True),
        headers=deadline,
    )
    # Paths below /v1 that the gateway does not know are the engine's to refuse, with a code of its own.
    lost = refused(status=404)
    yield AbnormalCase(name="no-such-path", group="wrong-type", body=said("hello"), refusal=lost, path=f"{CHAT}s")


def _characters() -> Iterator[AbnormalCase]:
    yield from _cases(
        "characters",
        BAD_CHARACTERS,
        {
            "nul": said("a\0b"),
            "half-surrogate": b',"messages":[{"role":"user","content":"a \\ud83d b"}]' + TAIL,
            "raw-control": b',"messages":[{"role":"user","content":"a \x07 b"}]' + TAIL,
            "no-utf8": b',"messages":[{"role":"user","content":"a \xff\xfe b"}]' + TAIL,
            "utf8-too-long": b',"messages":[{"role":"user","content":"a \xc0\xaf b"}]' + TAIL,
        },
    )
    yield from _cases(
        "characters",
        None,
        {
            "emoji": said("Say hello to \U0001f468\u200d\U0001f469\u200d\U0001f467 and \U0001f1fa\U0001f1f3."),
            "chinese": said("\u8bf7\u95ee\u4f60\u597d\u5417\uff1f"),
            "right-to-left": said("\u0645\u0631\u062d\u0628\u0627 \u202eolleh\u202c"),
            "combining": said("h\u0301\u0300\u0302\u0308e\u0301\u0300\u0302\u0308llo"),
            "zero-width": said("he\u200bl\u200clo\ufeff"),
            "not-a-character": said("a \uffff b \U0010ffff"),
            "terminal-colours": said("\x1b[31mhello\x1b[0m \x0c"),
            "backslashes": said('C:\\temp\\new "quoted" \\u0041 \\\\'),
            "template": said("{{ 7 * 7 }} {% raw %} <|im_end|> <|endoftext|> </s> [INST]"),
            "markup": said("<script>alert(1)</script> ' OR 1=1; -- \r\n\r\nHTTP/1.1 200 OK"),
        },
    )


def _unusual() -> Iterator[AbnormalCase]:
    yield from _cases(
        "unusual",
        None,
        {
            "unknown-fields": _with('"max_tokens":8,"colour":"blue","nested":{"a":[1,{"b":null}]}'),
            "one-token": _with('"max_tokens":1'),
            "text-parts": said([{"type": "text", "text": "Say "}, {"type": "text", "text": "hello."}]),
            "many-messages": _messages(
                [{"role": "user" if place % 2 == 0 else "assistant", "content": f"{place}"} for place in range(21)]
            ),
            "white-space-around": b' , \n\t"messages" : [ {"role" : "user" , "content":"hello"} ] ' + TAIL,
            "escaped-name": b',"\\u006dessages":[{"role":"user","content":"hello"}]' + TAIL,
        },
    )


def _sizes() -> Iterator[AbnormalCase]:
    yield from _cases(
        "sizes",
        either("context_length_exceeded", "exceeds_kv_pool", "invalid_value", "BadRequestError"),
        {"max-tokens-huge": _with('"max_tokens":9007199254740993'), "max-tokens-1e6": _with('"max_tokens":1000000')},
    )
    yield from _cases(
        "repeated",
        Refusal(frozenset({400}), frozenset({"repetitive_input", "context_length_exceeded"}), may_answer=True),
        {
            "one-letter": said("a" * 400),
            "one-word": said("no " * 120),
            "one-sentence": said("Tell me again what you told me before. " * 15),
            "emoji-repeated": said("\U0001f600" * 30),
            "line-breaks": said("hello" + "\n" * 200),
        },
    )


def _overlong(context_tokens: int | None) -> Iterator[AbnormalCase]:
    if context_tokens is None:
        return
    just, far = context_tokens + max(16, context_tokens // 50), 4 * context_tokens
    filler = Filler(stream(0, "load/abnormal"))
    bodies = {"just-above": said(filler.words(0, just)), "far-above": said(filler.words(0, far))}
    yield from _cases("over-long", REFUSAL, bodies)
