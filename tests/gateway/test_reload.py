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


def test_rows_travel_only_while_somebody_keeps_them_and_are_counted_always() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, are_rows_sent=False) as stand:
            assert (await stand.ask(post(chat()))).status == 200
            assert (await stand.ask(post(b"no json"))).status == 400
            assert stand.rows == []
            stand.reload(["r1"], *settings_for({"r1": engine}).endpoints)
            assert (await stand.ask(post(chat()))).status == 200
            assert len(stand.rows) == 1
            counted = stand.metrics.snapshot({}, 0)
            assert sum(count for each in counted.series for *_, count in each.requests) == 2
            assert sum(count for _, count in counted.invalid) == 1

    run_virtually(main())
