"""Answers of a real engine are looked into: JSON passes, a loop is stopped and its sequence is free."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.live import running
from tests.live.running import CHAT, Exchange, Service, call, said, until

pytestmark = pytest.mark.live

SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
FOR_EVER = 'root ::= "understanding " root'
"""A grammar that lets llama.cpp write nothing else, and never end."""


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running.service(
        tmp_path_factory.mktemp("output") / "serve.log", "--set", "output.repetitive=stop", within_s=120
    ) as started:
        yield started


def test_json_that_fits_its_schema_passes_without_a_label(watching: Service) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "colour", "schema": SCHEMA}}
    answer = call(watching.url, CHAT, said("A colour, please.", response_format=form, max_tokens=40))
    assert json.loads(answer.json["choices"][0]["message"]["content"])["colour"] in ("red", "green")
    assert "x-tidegate-output" not in {name.lower() for name in answer.headers}


def test_json_that_reaches_its_bound_is_labelled(watching: Service) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "colour", "schema": SCHEMA}}
    answer = call(watching.url, CHAT, said("A colour, please.", response_format=form, max_tokens=2))
    labels = {name.lower(): value for name, value in answer.headers.items()}
    assert labels["x-tidegate-output"] == "output_truncated"


def test_a_loop_is_stopped_and_its_sequence_is_free(watching: Service) -> None:
    exchange = Exchange(watching.url, said("Go on.", stream=True, grammar=FOR_EVER, max_tokens=900))
    body = exchange.read_all()
    exchange.leave()
    assert b'"code":"output_repetitive"' in body
    assert b"[DONE]" not in body
    events = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    written = [json.loads(each).get("choices", [{"delta": {}}])[0]["delta"].get("content") or "" for each in events]
    # A loop of 1024 characters is seen at the next 512th, and within 32 chunks of some 7 characters.
    assert 1024 <= len("".join(written)) <= 1024 + 512 + 32 * 14
    until(watching.is_idle, 30)
    metrics = call(watching.admin, "/metrics").body.decode()
    assert any('problem="output_repetitive"' in line and line.endswith(" 1.0") for line in metrics.splitlines())
