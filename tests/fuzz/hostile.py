"""Requests that no honest client sends, by a seed: the same seed gives the same bytes on every machine.

Five families: HTTP that is wrong, JSON that is wrong, headers that are abused, odd paths and methods, and right
requests whose client misbehaves. An ``Attack`` is what one connection sends, how it is cut into writes, and how the
connection ends.
"""

from __future__ import annotations

from tests.fuzz.attack import PATHS, Attack, Dice, cut, right, said
from tests.fuzz.hostile_http import wrong_http
from tests.fuzz.hostile_json import wrong_json


def attack(seed: int, models: tuple[str, ...] = ("m",)) -> Attack:
    """One connection's worth."""
    dice = Dice(seed)
    family = dice.choices([wrong_http, wrong_json, abused_headers, odd_paths, wild_clients], [30, 35, 20, 10, 5])[0]
    return family(dice, dice.choice(models))


NAMES = (
    b"x-tidegate-deadline-ms",
    b"grpc-timeout",
    b"x-tidegate-class",
    b"x-tidegate-session",
    b"x-stainless-read-timeout",
    b"idempotency-key",
    b"prefer",
    b"x-forwarded-for",
    b"x-request-id",
    b"content-type",
    b"content-encoding",
    b"authorization",
    b"accept",
    b"accept-encoding",
    b"traceparent",
    b"x-real-ip",
    b"forwarded",
    b"via",
    b"cookie",
    b"x-stainless-retry-count",
    b"origin",
    b"te",
    b"x-http-method-override",
    b"connection",
    b"expect",
    b"range",
)
WORDS = (
    b"",
    b"0",
    b"-1",
    b"1",
    b"50",
    b"1e309",
    b"nan",
    b"inf",
    b"-inf",
    b"1_000",
    b"0x10",
    b"\xd9\xa1",
    b"9" * 400,
    b"5S",
    b"1n",
    b"00000001m",
    b"99999999H",
    b"5 S",
    b"null",
    b"respond-async",
    b"respond-async, wait=-1",
    b"wait=1e9",
    b"a" * 3000,
    b"127.0.0.1",
    b"::1",
    b"[::1]:80, 1.2.3.4:5",
    b"1.2.3.4,,,,",
    b"," * 500,
    b"%00",
    b"\xff\xfe\xfd",
    b"batch",
    b"interactive",
    b"other",
    b"Bearer ",
    b"Bearer \xff",
    b"Basic eDp5",
    b"gzip",
    b"identity",
    b"multipart/form-data; boundary=x",
    b"text/html",
    b"application/json; charset=utf-16",
    b"bytes=0-1",
    b"same",
    b"\t",
    b"a\tb",
    b"';--",
    b"${jndi:ldap://x}",
    b"\x80" * 50,
)


def abused_headers(dice: Dice, model: str) -> Attack:
    lines = b"".join(b"%b: %b\r\n" % (dice.choice(NAMES), dice.choice(WORDS)) for _ in range(dice.randint(1, 4)))
    body = said(model, stream=dice.random() < 0.5)
    return Attack("headers", cut(dice, right(body, dice.choice(PATHS), lines)), is_due=b"expect" not in lines)


TARGETS = (
    b"/",
    b"//",
    b"*",
    b"//v1/chat/completions",
    b"/v1",
    b"/v1/",
    b"/v1//chat/completions",
    b"/v1/../admin/view",
    b"/admin/view",
    b"/v1/chat/completions/",
    b"/v1/chat/completions?a=b",
    b"/v1/chat/completions#x",
    b"/V1/CHAT/COMPLETIONS",
    b"/v1/%2e%2e/x",
    b"http://evil/v1/chat/completions",
    b"https://evil",
    b"ftp://x/v1/models",
    b"/v1/models/%00",
    b"/v1/models/\xff\xfe",
    b"?",
    b"/v1/files",
    b"/v1/" + b"a" * 4000,
    b"/v1/chat/completions?" + b"q=1&" * 2000,
    b"/health",
    b"/ready",
    b"/metrics",
    b"/v1/models",
    b"/health?x",
    b"/healthz",
    b"/v1/responses",
    b"/v1/images/generations",
    b"/v1/x\x7f",
    b"/v1/;/../..;/",
    b"/v1/chat%2fcompletions",
    b"/v1/health/m",
    b"/v1/health/%ff",
    b"/v1/results/x",
    b"/v1/models/m/../../admin",
    b"gate:80",
    b"/v1/jobs/1",
    b"/..",
    b"/v1/{}",
)
METHODS = (
    b"GET",
    b"POST",
    b"PUT",
    b"PATCH",
    b"DELETE",
    b"OPTIONS",
    b"TRACE",
    b"PROPFIND",
    b"M-SEARCH",
    b"QUERY",
    b"PURGE",
    b"LINK",
    b"HEAD",
    b"CONNECT",
    b"SOURCE",
)


def odd_paths(dice: Dice, model: str) -> Attack:
    method, target = dice.choice(METHODS), dice.choice(TARGETS + PATHS)
    body = dice.choice([b"", said(model), b"{}", b"x"])
    data = right(body, target, method=method)
    # CONNECT has no body that a server could tell, and some of these are no targets at all.
    return Attack("paths", cut(dice, data), is_due=method != b"CONNECT", is_head=method == b"HEAD")


def wild_clients(dice: Dice, model: str) -> Attack:
    body = said(model, stream=dice.random() < 0.5, max_tokens=dice.choice([1, 5, 50]))
    data = right(body, dice.choice(PATHS[:2])) * dice.choice([1, 1, 3])
    ending = dice.choice(["half", "close", "reset", "wait"])
    if ending != "wait" and dice.random() < 0.4:
        data = data[: dice.randrange(1, len(data))]
    return Attack("wild", cut(dice, data), ending)
