"""``GET /v1/health``: cheap, cacheable for a second, behind the same key as the models, and without any engine."""

from __future__ import annotations

import json
from hashlib import sha256

from tests.gateway.stand import WHOLE, Engine, chat, get, post, stand_for
from tidegate.gateway.settings import ApiKey
from tidegate.testing.virtual_loop import run_virtually


def test_a_model_says_how_it_is_doing_and_for_how_long_that_may_be_kept() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            await stand.ask(post(chat()))
            asked = len(stand.rows)
            answer = await stand.ask(get("/v1/health/m"))
            assert answer.status == 200
            assert answer.headers[b"cache-control"] == b"max-age=1"
            report = json.loads(answer.body)
            assert (report["model"], report["state"], report["requests"]) == ("m", "ok", 1)
            assert (report["p90_whole_ms"] is not None, report["error_rate"]) == (True, 0.0)
            listed = json.loads((await stand.ask(get("/v1/health"))).body)
            assert listed["object"] == "list"
            assert [each["model"] for each in listed["data"]] == ["m"]
            assert len(stand.rows) == asked

    run_virtually(main())


def test_a_model_that_does_not_exist_is_a_404_in_openais_shape() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            answer = await stand.ask(get("/v1/health/org%2Fother"))
            assert (answer.status, answer.error["code"], answer.error["param"]) == (404, "model_not_found", "model")
            assert b"cache-control" not in answer.headers

    run_virtually(main())


def test_it_needs_the_key_that_the_models_need_and_a_get() -> None:
    async def main() -> None:
        key = ApiKey(sha256=sha256(b"k").hexdigest(), tenant="t")
        with stand_for(Engine([WHOLE]), api_keys=(key,)) as stand:
            assert (await stand.ask(get("/v1/health/m"))).status == 401
            assert (await stand.ask(get("/v1/health/m", "authorization: Bearer k\r\n"))).status == 200
            wrong = await stand.ask(post(b"{}", path="/v1/health/m", headers="authorization: Bearer k\r\n"))
            assert wrong.status == 405

    run_virtually(main())
