"""A reload drops nothing: what is being connected or answered goes on as it began."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.gateway.stand import WHOLE, Engine, chat, post, settings_for, stand_for
from tidegate.testing.virtual_loop import run_virtually


@pytest.mark.parametrize("reload_after_s", [0.1, 0.7])
def test_a_request_outlives_a_change_of_its_replicas_endpoint(reload_after_s: float) -> None:
    async def main() -> None:
        engine = Engine([0.5, WHOLE])
        engine.dial_s = 0.5
        with stand_for(engine) as stand:
            asking = asyncio.create_task(stand.ask(post(chat())))
            await asyncio.sleep(reload_after_s)
            settings = settings_for({"r1": engine})
            renamed = replace(settings.endpoints[0], model="another")
            stand.gateway.reconfigure(replace(settings, endpoints=(renamed,)))
            assert (await asking).status == 200
            assert (await stand.ask(post(chat()))).status == 200
            assert b'"another"' in engine.requests[-1].body
            assert len(engine.connections) == 2

    run_virtually(main())
