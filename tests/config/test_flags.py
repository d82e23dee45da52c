from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import ENGINE, problems_of, settings_of
from tidegate.config.flags import path_from, set_flags, upstream_flags
from tidegate.errors import ConfigError


def test_one_url_is_an_upstream_called_default() -> None:
    assert upstream_flags(["http://127.0.0.1:9/?a=b"]) == {
        ("upstreams",): {"default": {"replicas": [{"url": "http://127.0.0.1:9/?a=b"}]}}
    }


def test_names_gather_their_urls() -> None:
    found = upstream_flags(["chat=http://a", "chat=http://b", "small=embedded", "embedded"])
    assert found["upstreams",] == {
        "chat": {"replicas": [{"url": "http://a"}, {"url": "http://b"}]},
        "small": {"engine": {"kind": "embedded"}},
        "default": {"engine": {"kind": "embedded"}},
    }
    assert upstream_flags([]) == {}


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--upstream localhost:8000: must be \[NAME=\]URL"):
        upstream_flags(["localhost:8000"])


def test_an_upstream_flag_stands_beside_those_of_the_file(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, ENGINE, overrides=upstream_flags(["other=http://127.0.0.1:8"]))
    assert list(settings.upstreams) == ["chat", "other"]
    assert settings.origin(("upstreams", "other", "replicas", 0, "url")).place() == "--upstream"


def test_a_bad_flag_is_named(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, overrides=upstream_flags(["chat=ftp://x"]))
    assert problem.startswith("--upstream: upstreams.chat.replicas[0].url: must be a URL")
    assert problem.endswith("got 'ftp://x'")
    assert problems_of(tmp_path, overrides={("server", "port"): 99999}) == [
        "--port: server.port: must be at most 65535, got 99999"
    ]


def test_set_takes_any_key(tmp_path: Path) -> None:
    flags = set_flags(["upstreams.chat.replicas[0].sequences=8", "server.host=localhost", "ladder.order=[error]"])
    settings = settings_of(tmp_path, ENGINE, overrides=flags)
    assert settings.upstreams["chat"].replicas[0].sequences == 8
    assert settings.server.host == "localhost"


@pytest.mark.parametrize("text", ["server.port", "=3", "", "[]=1"])
def test_set_without_key_and_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="must be KEY=VALUE"):
        set_flags([text])


def test_keys_are_read_as_they_are_shown() -> None:
    assert path_from("upstreams.chat.replicas[10].url") == ("upstreams", "chat", "replicas", 10, "url")
