from __future__ import annotations

import asyncio

import pytest

from tests.load.pages_of_a_test import GATEWAY_PAGE, MODELS, VLLM_PAGE, pages
from tidegate.errors import ConfigError, EngineError
from tidegate.load.engine_look import EngineLook, Figures, GatewayLook, look_of
from tidegate.load.target import Target


def look(by_path: dict[str, str], *, is_gateway: bool = False, times: int = 1) -> Figures:
    async def run() -> Figures:
        async with pages(by_path) as url:
            target = Target(name="t", url=f"{url}/v1", model="m", admin_url=f"{url}/" if is_gateway else None)
            found = look_of(target)
            figures: Figures = {}
            for _ in range(times):
                figures = await found.read()
            return figures

    return asyncio.run(run())


def test_a_gateway_tells_its_queue_and_the_slots_of_all_its_replicas() -> None:
    found = look({"/metrics": GATEWAY_PAGE}, is_gateway=True)
    assert found == {("requests", "in the gateway's queue"): 4, ("slots", "used"): 11}


def test_an_admin_port_that_is_none_is_told_so() -> None:
    with pytest.raises(EngineError, match=r"/metrics answered 404 nothing there"):
        look({}, is_gateway=True)


def test_an_engine_is_recognised_once_and_tells_what_it_has() -> None:
    found = look({"/v1/models": MODELS, "/metrics": VLLM_PAGE, "/health": "ok"}, times=2)
    assert found[("requests", "running")] == 3
    assert found[("requests", "waiting")] == 2
    assert found[("preemptions since it started", "preemptions")] == 7
    assert ("tokens", "of KV in use") not in found


def test_a_plain_api_says_where_its_readings_may_be() -> None:
    with pytest.raises(EngineError, match="--admin"):
        look({"/v1/models": MODELS})


def test_an_engine_that_is_not_ready_is_a_failed_look() -> None:
    with pytest.raises(EngineError, match="/health answered 503 !loading"):
        look({"/v1/models": MODELS, "/metrics": VLLM_PAGE, "/health": "!loading"})


def test_the_key_of_a_target_goes_with_the_question() -> None:
    target = Target(name="t", url="http://h/v1", model="m", headers=(("Authorization", "Bearer k"),))
    found = look_of(target)
    assert isinstance(found, EngineLook)
    assert (found.address.url, found.address.api_key) == ("http://h", "k")
    assert isinstance(look_of(Target(name="t", url="http://h/v1", model="m", admin_url="http://h:1")), GatewayLook)
    with pytest.raises(ConfigError, match=r"ca_file none\.pem"):
        look_of(Target(name="t", url="https://h/v1", model="m", ca_file="none.pem"))
