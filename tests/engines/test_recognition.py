from __future__ import annotations

import asyncio

import pytest

from tests.engines.pages import LLAMACPP, VLLM, Answers, serving
from tidegate.engines.address import Address
from tidegate.engines.engine import Engine
from tidegate.engines.recognition import recognise
from tidegate.errors import EngineError


def recognised(answers: dict[str, Answers], **changed: Answers | None) -> Engine:
    async def ask() -> Engine:
        async with serving(answers, **changed) as pages:
            return await recognise(pages.address)

    return asyncio.run(ask())


def test_vllm_is_recognised_by_its_metrics() -> None:
    engine = recognised(VLLM)
    assert (engine.kind, engine.confirms_aborts) == ("vllm", True)


def test_llamacpp_is_recognised_by_its_metrics() -> None:
    assert recognised(LLAMACPP, props=None).kind == "llamacpp"


def test_llamacpp_without_metrics_is_recognised_by_its_slots() -> None:
    assert recognised(LLAMACPP, metrics=(501, b"")).kind == "llamacpp"


@pytest.mark.parametrize("page", [None, (200, b"sglang:num_running_reqs 1\n"), (401, b"")])
def test_anything_else_with_models_is_an_openai_server(page: tuple[int, bytes] | None) -> None:
    engine = recognised(VLLM, metrics=page)
    assert (engine.kind, engine.confirms_aborts) == ("openai", False)


def test_a_provider_that_pushes_back_is_still_recognised() -> None:
    assert recognised({"/v1/models": (429, b"slow down")}).kind == "openai"


@pytest.mark.parametrize("page", [None, (200, b"<html>"), (200, b'{"models":[]}'), (500, b"oops")])
def test_what_has_no_models_is_refused_with_advice(page: tuple[int, bytes] | None) -> None:
    with pytest.raises(EngineError, match="does not look like an OpenAI-compatible engine"):
        recognised(VLLM, v1__models=page, metrics=None)


def test_a_refused_key_is_said_even_when_the_metrics_are_open() -> None:
    with pytest.raises(EngineError, match="api_key_env"):
        recognised(LLAMACPP, v1__models=(401, b"Invalid API Key"))


def test_nobody_there_is_an_os_error() -> None:
    with pytest.raises(OSError):
        asyncio.run(recognise(Address(url="http://127.0.0.1:1")))
