"""JSON that is wrong, in HTTP that is right."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.fuzz.attack import PATHS, Attack, Dice, cut, fields, mutated, right, said


def wrong_json(dice: Dice, model: str) -> Attack:
    name, body = dice.choices([_wrong_field, _odd_text, _broken_text, _huge_text], [50, 26, 22, 2])[0](dice, model)
    return Attack(name, cut(dice, right(body, dice.choice(PATHS))), is_due=True)


FIELDS = (
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "best_of",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "user",
    "service_tier",
    "priority",
    "prompt",
    "input",
    "tools",
    "stop",
    "response_format",
    "metadata",
    "logit_bias",
    "seed",
    "functions",
    "logprobs",
    "prediction",
    "modalities",
)
VALUES = (
    "null",
    "true",
    "false",
    "0",
    "-1",
    "-0",
    "1e309",
    "-1e309",
    "1E400",
    "9" * 30,
    "-" + "9" * 400,
    "0.1",
    "1e-400",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\uD83D\\uDE00"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    '[""]',
    "[{}]",
    '"m"',
    '{"a":1,"a":2}',
    '["\\ud800"]',
    "[[1,2],[3]]",
    "[1,2,3]",
    '[1,"a",null]',
    "[[[[1]]]]",
    "18446744073709551616",
    '[{"role":null,"content":null}]',
    '[{"role":"user","content":[]}]',
    '[{"role":"user","content":[{"type":"image_url"}]}]',
    '[{"content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]',
    '{"include_usage":"yes"}',
    '"flex"',
    "2147483648",
    '"' + "x" * 2000 + '"',
    '[{"role":"tool"}]',
    '"data:' + "A" * 3000 + '"',
    "-9223372036854775809",
    "1.0",
    "3.5",
)


def _wrong_field(dice: Dice, model: str) -> tuple[str, bytes]:
    """One to three fields with a value that they cannot have."""
    plain = {name: json.dumps(value) for name, value in fields(model).items()}
    for _ in range(dice.randint(1, 3)):
        plain[dice.choice(FIELDS)] = dice.choice(VALUES)
    if dice.random() < 0.2:
        plain.pop(dice.choice(sorted(plain)))
    return "wrong-field", ("{" + ",".join(f'"{name}":{value}' for name, value in plain.items()) + "}").encode()


def _odd_text(dice: Dice, model: str) -> tuple[str, bytes]:
    inside = said(model)[1:-1]
    text = dice.choice(
        [b"", b" ", b"{}", b"[]", b"null", b"true", b'"x"', b"1", b"NaN", b"Infinity", b"-", b"{", b"}", b"{]", b"[}"]
        + [b"{%b,}" % inside, b"{%b} {}" % inside, b"\xef\xbb\xbf{%b}" % inside, b"{%b//x\n}" % inside, b"{'a':1}"]
        + [b'{%b,"model":"other"}' % inside, b'{%b,"":1}' % inside, b'{%b,"x":NaN}' % inside, b'{%b,"x":\xff}' % inside]
        + [
            b'{%b,"x":"\x00"}' % inside,
            b'{%b,"x":"\\q"}' % inside,
            b'{%b,"x":"a\nb"}' % inside,
            b'{%b,"x":01}' % inside,
        ]
        + [b'{%b,"\\ud800":1}' % inside, b'{%b,"x":"\xed\xa0\x80"}' % inside, b'{%b,"x":+1}' % inside]
        + [b'{%b,"x":%b}' % (inside, b"[" * n + b"]" * n) for n in (10, 200, 1100, 5000)]
        + [b'{%b,"x":%b1%b}' % (inside, b'{"a":' * n, b"}" * n) for n in (10, 1100)]
        + [b"[" * 3000, b'{"a":' * 3000, b'{"messages":' + b"[" * 2000, b"\x00" * 50, b"\xff\xfe{\x00}\x00"]
    )
    return "odd-text", text


def _broken_text(dice: Dice, model: str) -> tuple[str, bytes]:
    text = said(model, stream=dice.random() < 0.3, user="someone", stop=["a", "b"])
    return "broken-text", text[: dice.randrange(len(text))] if dice.random() < 0.3 else mutated(dice, text)


def _huge_text(dice: Dice, model: str) -> tuple[str, bytes]:
    return "huge-text", dice.choice(HUGE)(model, dice.choice([70_000, 300_000, 1_000_000]))


def _with(model: str, member: bytes) -> bytes:
    return said(model)[:-1] + b',"x":%b}' % member


def _talk(model: str, content: object) -> bytes:
    return said(model, messages=[{"role": "user", "content": content}])


HUGE: tuple[Callable[[str, int], bytes], ...] = (
    lambda model, size: said(model, user="u" * size),
    lambda model, size: _talk(model, "word " * (size // 5)),
    lambda model, size: _talk(model, "\0" * (size // 6)),
    lambda model, size: _talk(model, [{"type": "image_url", "image_url": {"url": "data:" + "A" * size}}]),
    lambda model, size: said("x" * size),
    lambda model, size: said(model, prompt=[1] * (size // 4)),
    lambda model, size: said(model, prompt=["a"] * (size // 6)),
    lambda model, size: said(model, **{f"k{number}": number for number in range(size // 20)}),
    lambda model, size: said(model, messages=[{}] * (size // 4)),
    lambda model, size: _with(model, b'"%b"' % (b"\\ud800" * (size // 6))),
    lambda model, size: _with(model, b"9" * size),
    lambda model, size: said(model) + b" " * size,
)
"""Each of about so many bytes."""
