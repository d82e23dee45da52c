"""The bytes of requests."""

from __future__ import annotations

import pytest

from tests.load.asks_of_a_test import ask
from tidegate.errors import ConfigError
from tidegate.load.ask import COMPLETIONS
from tidegate.load.request_text import RequestText
from tidegate.load.target import Target


def text(url: str) -> RequestText:
    return RequestText(Target(name="a", url=url, model='m"1'))


def test_a_request_is_what_http_wants() -> None:
    made = text("http://user:word@host.example:81/base/v1/").of(ask(body=b',"prompt":"x"}', path=COMPLETIONS))
    head, _, body = made.partition(b"\r\n\r\n")
    assert body == b'{"model":"m\\"1","prompt":"x"}'
    assert head.split(b"\r\n") == [
        b"POST /base/v1/completions HTTP/1.1",
        b"host: host.example:81",
        b"content-type: application/json",
        b"content-length: %d" % len(body),
    ]


def test_headers_of_the_ask_stand_in_place_of_the_target_s() -> None:
    made = RequestText(Target(name="a", url="https://h/v1", model="m", headers=(("Authorization", "a"), ("x-a", "1"))))
    assert (made.host, made.port, made.is_tls) == ("h", 443, True)
    plain = made.of(ask())
    assert plain == made.of(ask())
    assert b"authorization: a\r\nx-a: 1\r\n" in plain
    own = made.of(ask(headers=(("authorization", "b"),)))
    assert b"authorization: b\r\nx-a: 1\r\n" in own
    assert b"authorization: a" not in own


@pytest.mark.parametrize("url", ["host:80/v1", "ftp://host/v1", "http:///v1", ""])
def test_what_is_no_url_is_said_with_the_target_s_name(url: str) -> None:
    with pytest.raises(ConfigError, match=r"target a: .* is no URL; write http://HOST:PORT/v1"):
        text(url)


def test_a_line_break_cannot_become_a_header() -> None:
    with pytest.raises(ConfigError, match="line break"):
        text("http://h/v1").of(ask(headers=(("x-a", "1\r\nx-b: 2"),)))
