from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tidegate.cli.load_targets import Credentials, targets_of
from tidegate.errors import ConfigError
from tidegate.load.target import Target
from tidegate.load.target_facts import facts_of


@contextmanager
def serving(pages: dict[str, tuple[int, Any]]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server with fixed answers: its URL, and the headers of every call."""
    seen: list[dict[str, str]] = []

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            status, page = pages.get(self.path, (404, {"error": {"message": "no"}}))
            body = page if isinstance(page, bytes) else json.dumps(page).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def models(*entries: dict[str, object]) -> tuple[int, dict[str, object]]:
    return 200, {"object": "list", "data": list(entries)}


OURS = {"/v1/models": models({"id": "qwen", "owned_by": "tidegate", "max_model_len": 4096})}
OTHER = {"/v1/models": models({"id": "one", "max_model_len": 512}, {"id": "two"})}
LLAMA = {
    "/v1/models": models({"id": "smollm2"}),
    "/props": (200, {"total_slots": 2, "default_generation_settings": {"n_ctx": 2048}, "model_path": "x"}),
    "/metrics": (200, b"llamacpp:requests_processing 0\n"),
    "/slots": (200, [{"n_ctx": 2048}, {"n_ctx": 2048}]),
}


def test_a_tidegate_says_what_it_is_and_how_long_a_conversation_may_be() -> None:
    with serving(OURS) as (url, seen):
        ((target, facts),) = targets_of([url], Credentials(), None, "http://127.0.0.1:1")
    assert (target.url, target.model, target.admin_url) == (f"{url}/v1", "qwen", "http://127.0.0.1:1")
    assert (facts.kind, facts.context_tokens) == ("tidegate", 4096)
    assert len(seen) == 1


def test_an_engine_is_asked_for_its_kind_and_context() -> None:
    with serving(LLAMA) as (url, _), serving(OTHER) as (other, _):
        ((bare, facts),) = targets_of([f"bare={url}/v1/"], Credentials(), None, None)
        ((_, second),) = targets_of([other], Credentials(), "one", None)
    assert (bare.name, bare.url, facts.kind, facts.context_tokens) == ("bare", f"{url}/v1", "llamacpp", 2048)
    assert (second.kind, second.context_tokens) == ("openai", 512)


def test_several_models_must_be_told_apart_and_an_unknown_one_is_refused() -> None:
    with serving(OTHER) as (url, _):
        with pytest.raises(ConfigError) as several:
            targets_of([url], Credentials(), None, None)
        with pytest.raises(ConfigError) as unknown:
            targets_of([url], Credentials(), "three", None)
    assert "lists 2 models (one, two); name one with --model" in several.value.problems[0]
    assert "no model 'three' there; it lists one, two" in unknown.value.problems[0]


def test_the_key_and_the_headers_are_sent_and_a_refused_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    given = Credentials(api_key_env="MY_KEY", headers=("X-Team: blue", "x-a=b=c"))
    with serving({"/v1/models": (401, {})}) as (url, seen), pytest.raises(ConfigError) as refused:
        targets_of([url], given, None, None)
    assert "answered 401: give the key with --api-key-env" in refused.value.problems[0]
    assert (seen[0]["authorization"], seen[0]["x-team"], seen[0]["x-a"]) == ("Bearer secret", "blue", "b=c")


def test_a_service_without_a_list_can_be_loaded_by_the_name_of_its_model() -> None:
    with serving({"/v1/models": (200, b"hello")}) as (url, _):
        ((target, facts),) = targets_of([url], Credentials(), "m", None)
        with pytest.raises(ConfigError) as unnamed:
            targets_of([url], Credentials(), None, None)
    assert (target.model, facts.kind, facts.context_tokens) == ("m", "openai", None)
    assert "--model NAME does without it" in unnamed.value.problems[0]


def test_every_mistake_in_the_words_is_said_at_once() -> None:
    given = Credentials(api_key_env="NOT_SET_ANYWHERE", headers=("nonsense",))
    with pytest.raises(ConfigError) as found:
        targets_of(["localhost:8000", "a=http://x/v1", "a=http://y/v1"], given, None, None)
    said = "\n".join(found.value.problems)
    assert "--header 'nonsense'" in said
    assert "NOT_SET_ANYWHERE: that variable is not set" in said
    assert "localhost:8000: expected [NAME=]http://HOST:PORT/v1" in said
    assert "two targets have one name" in said


@pytest.mark.parametrize("url", ["http://[::1/v1", "http://127.0.0.1:abc/v1", "http://127.0.0.1:70000/v1", "ftp://x"])
def test_what_is_no_url_is_said_with_the_form_of_one(url: str) -> None:
    with pytest.raises(ConfigError, match="expected \\[NAME=\\]http://HOST:PORT/v1"):
        targets_of([url], Credentials(), None, None)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as found:
        targets_of(["http://me:hush@127.0.0.1:9/v1"], Credentials(), None, None)
    (said,) = found.value.problems
    assert said.startswith("127.0.0.1:9: leave name and password out of the URL")
    assert "hush" not in said


def test_targets_that_do_not_answer_are_all_named() -> None:
    with serving({}) as (url, _):
        pass  # nobody listens there any more
    with pytest.raises(ConfigError) as found:
        targets_of([f"a={url}", f"b={url}/v1"], Credentials(), None, None)
    assert len(found.value.problems) == 2
    assert "does the service run" in found.value.problems[0]


def test_silence_is_said_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.load.target_facts.ASK_WITHIN_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = Target(name="x", url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1", model="")
        with pytest.raises(ConfigError, match="no answer within"):
            asyncio.run(facts_of("x", target, None))
