"""What a client gets for what it asks. Everything runs in memory and in virtual time."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from tests.gateway.stand import WHOLE, Engine, chat, get, json_answer, post, stand_for
from tidegate.gateway.intake import MOST_TOKENS
from tidegate.gateway.settings import ApiKey, Endpoint, Limits
from tidegate.policy.reading import Capacity
from tidegate.testing.virtual_loop import run_virtually

MULTIPART = b'--B\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--B--\r\n'
WHOLE_BODY = WHOLE.partition(b"\r\n\r\n")[2]


def test_a_whole_answer_comes_back_with_its_body_unchanged_and_our_headers() -> None:
    async def main() -> None:
        with stand_for(Engine([0.2, WHOLE])) as stand:
            got = await stand.ask(post(chat(), headers="x-request-id: mine\r\n"))
            assert (got.status, got.body) == (200, WHOLE_BODY)
            assert got.headers[b"x-request-id"] == b"mine"
            assert got.headers[b"x-tidegate-replica"] == b"r1"
            assert b"x-tidegate-queue-ms" not in got.headers
            row = stand.rows[0]
            assert (row.status, row.code, row.prompt_tokens, row.output_tokens) == (200, "", 7, 3)
            assert (row.request_id, row.route, row.upstream) == ("mine", "/v1/chat/completions", "m")
            assert stand.permits == 0

    run_virtually(main())


def test_what_the_engine_gets_is_what_the_client_sent_less_what_is_not_its_business() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        endpoint = Endpoint(name="r1", host="engine.example", port=8000, api_key="secret", base_path="/base")
        with stand_for(engine, endpoints=(endpoint,)) as stand:
            headers = (
                "authorization: Bearer client\r\ncookie: a=b\r\naccept-encoding: gzip\r\nx-custom: kept\r\n"
                "connection: keep-alive, X-Hop\r\nx-hop: 1\r\nte: trailers\r\nx-tidegate-deadline-ms: 5000\r\n"
                "traceparent: 00-abc-def-01\r\n"
            )
            body = json.dumps(chat(seed=7)).encode() + b" "
            await stand.ask(post(body, "/v1/chat/completions?v=1", headers))
            request = engine.requests[0]
            assert (request.method, request.target) == (b"POST", b"/base/v1/chat/completions?v=1")
            assert request.body == body
            assert dict(request.headers) | {b"x-request-id": b""} == {
                b"host": b"engine.example:8000",
                b"authorization": b"Bearer secret",
                b"x-request-id": b"",
                b"content-type": b"application/json",
                b"content-length": str(len(body)).encode(),
                b"x-custom": b"kept",
                b"traceparent": b"00-abc-def-01",
                b"x-tidegate-deadline-ms": b"5000",
            }

    run_virtually(main())


def test_a_passthrough_endpoint_gets_the_clients_own_authorization() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        endpoint = Endpoint(name="r1", host="h", port=80, api_key="ours", is_passthrough=True)
        with stand_for(engine, endpoints=(endpoint,)) as stand:
            await stand.ask(post(chat(), headers="authorization: Bearer client\r\n"))
            assert engine.requests[0].fields[b"authorization"] == b"Bearer client"

    run_virtually(main())


def test_a_public_name_becomes_the_engines_and_a_missing_bound_is_written() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        endpoint = Endpoint(name="r1", host="h", port=80, model="org/real-7b")
        capacity = Capacity(kv_tokens=65536, sequences=8, context_tokens=4096)
        with stand_for(engine, endpoints=(endpoint,), capacity=capacity) as stand:
            asked = {key: value for key, value in chat().items() if key != "max_tokens"}
            await stand.ask(post(asked))
            sent = json.loads(engine.requests[0].body)
            assert sent.pop("model") == "org/real-7b"
            assert sent.pop("max_tokens") == stand.path.config.slots.default_max_tokens
            assert sent == {"messages": asked["messages"]}

    run_virtually(main())


def test_a_request_with_images_goes_to_the_upstream_that_takes_them() -> None:
    async def main() -> None:
        text, eye = Engine([WHOLE]), Engine([WHOLE])
        endpoints = (
            Endpoint(name="r1", host="127.0.0.1", port=9000),
            Endpoint(name="eye", host="127.0.0.1", port=9000, model="vl"),
        )
        routed = {"endpoints": endpoints, "upstreams": {"eye": "vl"}, "images_to": {"m": "vl"}}
        with stand_for({"r1": text, "eye": eye}, **routed) as stand:
            image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
            message = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
            await stand.ask(post(chat(messages=[message])))
            await stand.ask(post(chat()))
            assert [json.loads(engine.requests[0].body)["model"] for engine in (eye, text)] == ["vl", "m"]
            assert [len(engine.requests) for engine in (eye, text)] == [1, 1]
            assert [row.upstream for row in stand.rows] == ["vl", "m"]

    run_virtually(main())


@pytest.mark.parametrize(
    ("asked", "tier", "sent"),
    [
        pytest.param({}, None, None, id="the most urgent is what vLLM takes for granted"),
        pytest.param({}, "batch", 2, id="a class steps back"),
        pytest.param({"priority": -5}, None, 0, id="a client cannot step forward"),
        pytest.param({"priority": "high"}, "batch", 2, id="whatever it sends"),
    ],
)
def test_a_service_class_goes_out_as_the_priority_of_a_vllm_that_orders_by_it(
    asked: dict[str, Any], tier: str | None, sent: int | None
) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        endpoint = Endpoint(name="r1", host="h", port=80, priorities=(("interactive", 0), ("batch", 2)))
        with stand_for(engine, endpoints=(endpoint,)) as stand:
            await stand.ask(post(chat(**asked, **({"service_tier": tier} if tier else {}))))
            assert json.loads(engine.requests[0].body).get("priority") == sent

    run_virtually(main())


def test_an_engine_that_is_not_told_to_order_gets_the_body_as_it_came() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            body = chat(priority=-5, service_tier="batch")
            await stand.ask(post(body))
            assert json.loads(engine.requests[0].body) == body

    run_virtually(main())


@pytest.mark.parametrize(
    ("path", "body", "sequences"),
    [
        ("/v1/completions", {"model": "m", "prompt": ["a", "b"], "n": 3, "max_tokens": 4}, 6),
        ("/v1/completions", {"model": "m", "prompt": [[1, 2], [3]], "best_of": 2, "max_tokens": 4}, 4),
        ("/v1/embeddings", {"model": "m", "input": ["a", "b", "c"]}, 1),
        ("/v1/chat/completions", chat(n=2), 2),
    ],
)
def test_the_routes_of_the_api_reach_the_engine(path: str, body: dict[str, Any], sequences: int) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            assert (await stand.ask(post(body, path))).status == 200
            assert engine.requests[0].target == path.encode()
            assert stand.rows[0].sequences == sequences

    run_virtually(main())


@pytest.mark.parametrize("prompts", [1, 3, 40])
def test_a_tenant_pays_for_every_prompt_of_a_list(prompts: int) -> None:
    async def main() -> None:
        usage = json_answer({"data": [], "usage": {"prompt_tokens": 10 * prompts, "total_tokens": 10 * prompts}})
        with stand_for(Engine([usage])) as stand:
            body = {"model": "m", "input": ["0123456789" * 10] * prompts}
            assert (await stand.ask(post(body, "/v1/embeddings"))).status == 200
            account = stand.path.quota.accounts["default"]
            assert account.charged == pytest.approx(26 * prompts, rel=0.05)
            assert (account.settled, account.open) == (10 * prompts, 0)
            assert stand.rows[0].prompt_tokens == 10

    run_virtually(main())


@pytest.mark.parametrize(
    "request_bytes",
    [
        get("/v1/files/abc/content"),
        post({"model": "m", "input": "x", "max_output_tokens": 5}, "/v1/responses"),
        b"DELETE /v1/files/abc HTTP/1.1\r\nhost: g\r\n\r\n",
        post(MULTIPART, "/v1/audio/transcriptions").replace(b"application/json", b"multipart/form-data; boundary=B"),
    ],
)
def test_any_other_path_under_v1_passes_through_as_class_other(request_bytes: bytes) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            assert (await stand.ask(request_bytes)).body == WHOLE_BODY
            assert engine.requests[0].body == request_bytes.partition(b"\r\n\r\n")[2]
            assert stand.rows[0].service_class == "other"

    run_virtually(main())


def test_strict_paths_close_what_is_not_known() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, are_paths_strict=True) as stand:
            got = await stand.ask(get("/v1/files"))
            assert (got.status, got.error["code"]) == (404, "unknown_url")
            assert not engine.requests

    run_virtually(main())


def test_a_gateway_without_a_ready_replica_is_alive_and_not_ready() -> None:
    async def main() -> None:
        with stand_for({"a": Engine([WHOLE]), "b": Engine([WHOLE])}) as stand:
            for replica, is_ready, status in (("a", False, 200), ("b", False, 503), ("a", True, 200)):
                stand.gateway.note_reading(replica, is_ready=is_ready)
                assert (await stand.ask(get("/ready"))).status == status
                assert (await stand.ask(get("/health"))).status == 200

    run_virtually(main())


def test_models_lists_public_names_only() -> None:
    async def main() -> None:
        endpoint = Endpoint(name="r1", host="h", port=80, model="org/real-7b")
        with stand_for(Engine([WHOLE]), endpoints=(endpoint,)) as stand:
            listed = json.loads((await stand.ask(get("/v1/models"))).body)
            assert [entry["id"] for entry in listed["data"]] == ["m"]
            assert json.loads((await stand.ask(get("/v1/models/m"))).body)["id"] == "m"
            assert (await stand.ask(get("/v1/models/org/real-7b"))).error["code"] == "model_not_found"
            assert "max_model_len" not in listed["data"][0], "no engine has told how long its context is"

    run_virtually(main())


def test_models_tell_how_long_a_conversation_may_be() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), capacity=Capacity(sequences=4, context_tokens=2048)) as stand:
            listed = json.loads((await stand.ask(get("/v1/models"))).body)
            assert [entry["max_model_len"] for entry in listed["data"]] == [2048]
            assert json.loads((await stand.ask(get("/v1/models/m"))).body)["max_model_len"] == 2048

    run_virtually(main())


def test_health_and_readiness_need_no_key_and_no_engine() -> None:
    async def main() -> None:
        key = ApiKey(sha256=sha256(b"k").hexdigest(), tenant="t")
        with stand_for(Engine([WHOLE]), api_keys=(key,)) as stand:
            assert (await stand.ask(get("/health"))).status == 200
            assert (await stand.ask(get("/ready"))).status == 200
            head = stand.client()
            head.send(b"HEAD /health HTTP/1.1\r\nhost: g\r\n\r\n")
            await stand.until(lambda: b"\r\n\r\n" in head.raw)
            assert head.raw.startswith(b"HTTP/1.1 200 OK")
            assert head.raw.endswith(b"\r\n\r\n")
            stand.gateway.drain()
            assert (await stand.ask(get("/ready"))).status == 503
            assert (await stand.ask(get("/health"))).status == 200
            assert not stand.rows

    run_virtually(main())


@pytest.mark.parametrize(
    ("request_bytes", "status", "code", "param"),
    [
        (post(b"no json"), 400, "invalid_json", None),
        (post(b"[]"), 400, "invalid_json", None),
        (post(chat(max_tokens="many")), 400, "invalid_json", None),
        (post(chat(n=129)), 400, "invalid_value", "n"),
        (post(chat(), headers="content-encoding: gzip\r\n"), 400, "invalid_json", None),
        (post(chat(), headers="x-tidegate-deadline-ms: soon\r\n"), 400, "invalid_header", None),
        (post(chat(model="nobody")), 404, "model_not_found", None),
        (get("/v1/chat/completions"), 405, "method_not_allowed", None),
        (post(chat(), "/health"), 405, "method_not_allowed", None),
        (b"TRACE /v1/x HTTP/1.1\r\nhost: g\r\n\r\n", 405, "method_not_allowed", None),
        (get("/"), 404, "unknown_url", None),
        (get("/metrics"), 404, "unknown_url", None),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "bad_http", None),
        (post(chat(messages=[{"role": "user", "content": "x" * 2000}])), 413, "request_too_large", None),
        (get("/v1/models", f"x-long: {'x' * 1100}\r\n"), 431, "headers_too_large", None),
    ],
)
def test_a_mistake_gets_an_error_in_openais_shape_and_a_row(
    request_bytes: bytes, status: int, code: str, param: str | None
) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, limits=Limits(head_bytes=1000, body_bytes=1500)) as stand:
            got = await stand.ask(request_bytes)
            assert (got.status, got.error["code"], got.error["param"]) == (status, code, param)
            assert got.headers[b"content-type"] == b"application/json"
            assert got.headers[b"x-tidegate-reason"] == code.encode()
            assert got.headers[b"x-should-retry"] == b"false"
            assert got.headers[b"x-request-id"]
            assert not engine.requests
            row = stand.rows[0]
            assert (row.status, row.refused.value if row.refused else row.code) == (status, code)

    run_virtually(main())


def test_a_key_names_its_tenant_and_no_other_key_opens() -> None:
    async def main() -> None:
        keys = tuple(ApiKey(sha256=sha256(key).hexdigest(), tenant=key.decode()) for key in (b"red", b"blue"))
        with stand_for(Engine([WHOLE]), api_keys=keys) as stand:
            assert (await stand.ask(post(chat(), headers="Authorization: bearer blue\r\n"))).status == 200
            assert stand.rows[-1].tenant == "blue"
            for header in ("", "authorization: Bearer green\r\n", "authorization: Basic blue\r\n"):
                got = await stand.ask(post(chat(), headers=header))
                assert (got.status, got.error["code"]) == (401, "invalid_api_key")
                assert (await stand.ask(get("/v1/models", header))).status == 401

    run_virtually(main())


def test_what_a_client_says_of_itself_reaches_the_policies() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            headers = (
                "x-tidegate-deadline-ms: 5000\r\nx-stainless-read-timeout: 60\r\nx-tidegate-class: batch\r\n"
                "x-tidegate-session: s1\r\nx-request-id: again\r\n"
            )
            await stand.ask(post(chat(), headers=headers))
            row = stand.rows[0]
            assert row.deadline_s == pytest.approx(5.0)
            assert row.first_byte_s == pytest.approx(60.0)
            assert (row.service_class, row.request_id) == ("batch", "again")

    run_virtually(main())


def test_an_answer_may_be_large() -> None:
    async def main() -> None:
        body = {"data": ["x" * 100] * 30_000, "usage": {"prompt_tokens": 5}}
        with stand_for(Engine([json_answer(body)])) as stand:
            got = await stand.ask(post({"model": "m", "input": "x"}, "/v1/embeddings"))
            assert json.loads(got.body) == body
            assert stand.rows[0].prompt_tokens == 5

    run_virtually(main())


def test_an_http10_client_gets_an_answer_that_it_can_read() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            client = stand.client()
            client.send(post(chat()).replace(b"HTTP/1.1", b"HTTP/1.0"))
            await stand.until(lambda: client.is_closed)
            assert b"connection: close" in client.raw
            assert client.answers[0].body == WHOLE_BODY

    run_virtually(main())


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_bound_of_more_tokens_than_can_be_counted_is_counted_as_the_most(name: str) -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine) as stand:
            body = b'{"model":"m","prompt":"a","%b":%b}' % (name.encode(), b"9" * 30)
            assert (await stand.ask(post(body, "/v1/completions"))).status == 200
            assert engine.requests[0].body == body
            assert stand.rows[0].max_tokens == MOST_TOKENS

    run_virtually(main())
