"""Requests whose clients come back for the answer. In memory and in virtual time."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import Any

import pytest

from tests.gateway.stand import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    WHOLE,
    ClientEnd,
    Engine,
    Got,
    Stand,
    Step,
    chat,
    chunk,
    event,
    get,
    json_answer,
    post,
    stand_for,
)
from tidegate.gateway.settings import ApiKey, Callbacks
from tidegate.policy.job_accounts import JobsConfig
from tidegate.policy.path_config import PathConfig
from tidegate.policy.queue import QueueConfig
from tidegate.policy.reading import Capacity
from tidegate.testing.virtual_loop import run_virtually

WHOLE_BODY = WHOLE.partition(b"\r\n\r\n")[2]
ASYNC = "prefer: respond-async\r\n"


def later(headers: str = ASYNC, **fields: Any) -> bytes:
    return post(chat(**fields), headers=headers)


def delete(path: str, headers: str = "") -> bytes:
    return get(path, headers).replace(b"GET", b"DELETE", 1)


def described(got: Got) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(got.body)
    return found


async def asked(stand: Stand, headers: str = ASYNC, **fields: Any) -> str:
    """The path of a job that was accepted."""
    got = await stand.ask(later(headers, **fields))
    assert got.status == 202, got.body
    return got.headers[b"location"].decode()


async def poll(stand: Stand, path: str, headers: str = "") -> dict[str, Any]:
    return described(await stand.ask(get(path, headers)))


async def ended(stand: Stand, path: str, within_s: float = 60.0) -> dict[str, Any]:
    ends_at = stand.loop.time() + within_s
    while (found := await poll(stand, path))["finished_at"] is None:
        assert stand.loop.time() < ends_at, found
        await asyncio.sleep(0.05)
    return found


async def passes(stand: Stand, seconds: float) -> None:
    until = stand.loop.time() + seconds
    await stand.until(lambda: stand.loop.time() >= until, seconds + 1)


def jobs_of(stand: Stand) -> dict[str, int]:
    return stand.gateway.jobs.view()


def begin(stand: Stand, request: bytes) -> ClientEnd:
    client = stand.client()
    client.send(request)
    return client


def test_a_job_is_accepted_polled_and_its_result_is_the_answer_byte_for_byte() -> None:
    async def main() -> None:
        engine = Engine([2.0, WHOLE])
        with stand_for(engine) as stand:
            got = await stand.ask(later(ASYNC + "x-request-id: mine\r\n"))
            assert (got.status, got.headers[b"preference-applied"]) == (202, b"respond-async")
            assert (got.headers[b"retry-after"], got.headers[b"x-request-id"]) == (b"1", b"mine")
            found, path = described(got), got.headers[b"location"].decode()
            assert path == f"/v1/jobs/{found['id']}"
            assert (found["object"], found["status"], found["model"]) == ("job", "running", "m")
            assert (found["finished_at"], found["expires_at"], found["poll_after_s"]) == (None, None, 1)
            early = await stand.ask(get(f"{path}/result"))
            assert (early.status, early.error["code"], early.headers[b"x-should-retry"]) == (
                409,
                "job_unfinished",
                b"true",
            )
            found = await ended(stand, path)
            assert (found["status"], found["error"]) == ("done", None)
            assert found["response"] == {"status_code": 200, "request_id": "mine", "body": json.loads(WHOLE_BODY)}
            assert found["expires_at"] - found["finished_at"] == 3600
            result = await stand.ask(get(f"{path}/result"))
            assert (result.status, result.body) == (200, WHOLE_BODY)
            assert result.headers[b"x-tidegate-original-request-id"] == b"mine"
            assert result.headers[b"x-tidegate-replica"] == b"r1"
            row = next(row for row in stand.rows if row.request_id == "mine")
            assert (row.service_class, row.status, row.output_tokens) == ("long", 200, 3)
            assert [each for each in engine.requests[0].fields if b"prefer" in each] == []

    run_virtually(main())


def test_a_stream_is_kept_as_its_whole_text_without_heartbeats() -> None:
    async def main() -> None:
        engine = Engine([20.0, STREAM_HEAD, chunk(event("a")), chunk(DONE) + STREAM_END])
        with stand_for(engine) as stand:
            path = await asked(stand, stream=True)
            found = await ended(stand, path)
            assert found["status"] == "done"
            assert found["response"]["body"] == (event("a") + DONE).decode()
            assert (await stand.ask(get(f"{path}/result"))).body == event("a") + DONE

    run_virtually(main())


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ([json_answer({"error": {"message": "broken"}}, "500 Internal Server Error")], "broken"),
        ([STREAM_HEAD, chunk(event("a")), 0.1, "abort"], "the answer ended before it was complete"),
        ([json_answer({"error": {"message": "no"}}, "400 Bad Request")], "no"),
    ],
)
def test_a_job_that_fails_says_how(script: list[Step], says: str) -> None:
    async def main() -> None:
        with stand_for(Engine(script)) as stand:
            found = await ended(stand, await asked(stand, stream=True))
            assert (found["status"], found["error"]["message"]) == ("failed", says)

    run_virtually(main())


def test_what_is_wrong_in_itself_is_told_at_once() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            got = await stand.ask(later(model="nobody"))
            assert (got.status, got.error["code"]) == (404, "model_not_found")
            for headers in (
                "x-tidegate-async: perhaps\r\n",
                "x-tidegate-callback: https://a.example/\r\n",
                ASYNC + "x-tidegate-callback: https://a.example/\r\n",
            ):
                got = await stand.ask(later(headers))
                assert (got.status, got.error["code"]) == (400, "invalid_header")
            assert jobs_of(stand)["jobs"] == 0

    run_virtually(main())


def test_a_client_that_waits_first_gets_the_answer_when_it_comes_in_time() -> None:
    async def main() -> None:
        with stand_for(Engine([1.0, WHOLE])) as stand:
            got = await stand.ask(later("prefer: respond-async, wait=3\r\n"))
            assert (got.status, got.body) == (200, WHOLE_BODY)
            assert jobs_of(stand)["jobs"] == 0

    run_virtually(main())


def test_a_client_that_waited_long_enough_gets_a_job() -> None:
    async def main() -> None:
        with stand_for(Engine([5.0, WHOLE])) as stand:
            began = stand.loop.time()
            got = await stand.ask(later("prefer: wait=3\r\nprefer: respond-async\r\n"))
            assert got.status == 202
            assert 3.0 <= stand.loop.time() - began <= 3.2
            assert (await ended(stand, got.headers[b"location"].decode()))["status"] == "done"

    run_virtually(main())


def test_a_stream_that_begins_in_time_is_given_as_it_comes() -> None:
    async def main() -> None:
        steps: list[Step] = [STREAM_HEAD, 1.0, chunk(event("a")), 5.0, chunk(event("b")), chunk(DONE) + STREAM_END]
        engine = Engine(steps)
        with stand_for(engine) as stand:
            client = begin(stand, later("prefer: respond-async, wait=3\r\n", stream=True))
            await stand.until(lambda: b'"a"' in client.raw, 1.5)
            await stand.until(lambda: bool(client.answers))
            assert client.answers[0].body == event("a") + event("b") + DONE
            leaver = begin(stand, later("prefer: respond-async, wait=3\r\n", stream=True))
            await stand.until(lambda: b'"a"' in leaver.raw, 1.5)
            assert leaver.transport is not None
            leaver.transport.abort()
            await stand.until(lambda: engine.left == 1, 0.1)
            assert jobs_of(stand)["jobs"] == 0

    run_virtually(main())


def test_a_client_that_leaves_the_door_ends_its_request() -> None:
    async def main() -> None:
        engine = Engine([50.0, WHOLE])
        with stand_for(engine) as stand:
            client = begin(stand, later("prefer: respond-async, wait=30\r\n"))
            await passes(stand, 0.5)
            assert client.transport is not None
            client.transport.abort()
            await stand.until(lambda: engine.left == 1, 0.1)
            assert jobs_of(stand)["jobs"] == 0

    run_virtually(main())


def test_a_job_waits_longer_than_its_class_and_a_full_queue_does_not_lose_it() -> None:
    async def main() -> None:
        engine = Engine([20.0, WHOLE])
        path = PathConfig(queue=QueueConfig(max_requests=2))
        with stand_for(engine, capacity=Capacity(sequences=1), path=path) as stand:
            paths = [await asked(stand, max_tokens=number + 1) for number in range(4)]
            states = [(await poll(stand, each))["status"] for each in paths]
            assert states == ["running", "queued", "queued", "queued"]
            for each in paths:
                assert (await ended(stand, each, 200.0))["status"] == "done"
            bodies = [json.loads(request.body)["max_tokens"] for request in engine.requests]
            assert sorted(bodies) == [1, 2, 3, 4]

    run_virtually(main())


def test_a_job_that_finds_no_place_in_its_time_has_failed() -> None:
    async def main() -> None:
        with stand_for(
            Engine([500.0, WHOLE]),
            capacity=Capacity(sequences=1),
            jobs=JobsConfig(max_wait_s=30.0, max_offered=2),
        ) as stand:
            begin(stand, post(chat()))
            await passes(stand, 0.1)
            paths = [await asked(stand) for _ in range(3)]
            for path in paths:
                found = await ended(stand, path)
                assert (found["status"], found["error"]["code"]) == ("failed", "queue_timeout")
                assert found["finished_at"] - found["created_at"] <= 31
            assert [row.code for row in stand.rows if row.refused].count("queue_timeout") >= 3

    run_virtually(main())


def test_what_is_parked_for_too_long_has_failed_and_a_client_at_the_door_hears_it() -> None:
    async def main() -> None:
        engine = Engine([100.0, WHOLE])
        with stand_for(engine, jobs=JobsConfig(max_wait_s=20.0, max_offered=1)) as stand:
            running, parked = await asked(stand), await asked(stand)
            client = begin(stand, later("prefer: respond-async, wait=60\r\n"))
            await stand.until(lambda: bool(client.answers))
            assert client.answers[0].error["code"] == "queue_timeout"
            found = await ended(stand, parked)
            assert (found["status"], found["error"]["code"]) == ("failed", "queue_timeout")
            assert (await ended(stand, running, 200.0))["status"] == "done"
            assert len({row.id for row in stand.rows}) == len(stand.rows)

    run_virtually(main())


def test_a_waiting_client_whose_job_finds_no_place_is_told_so() -> None:
    async def main() -> None:
        with stand_for(
            Engine([500.0, WHOLE]), capacity=Capacity(sequences=1), jobs=JobsConfig(max_wait_s=5.0, max_offered=1)
        ) as stand:
            begin(stand, post(chat()))
            await passes(stand, 0.1)
            clients = [begin(stand, later("prefer: respond-async, wait=90\r\n")) for _ in range(2)]
            await stand.until(lambda: all(bool(client.answers) for client in clients))
            assert [client.answers[0].error["code"] for client in clients] == ["queue_timeout", "queue_timeout"]
            assert jobs_of(stand)["jobs"] == 0

    run_virtually(main())


def test_a_client_may_wait_for_the_end_of_a_job_and_for_no_longer_than_it_says() -> None:
    async def main() -> None:
        engine = Engine([5.0, WHOLE])
        with stand_for(engine) as stand:
            path = await asked(stand)
            began = stand.loop.time()
            early = begin(stand, get(path, "prefer: wait=2\r\n") + get("/v1/models"))
            late = begin(stand, get(path, "prefer: wait=20\r\n"))
            leaver = begin(stand, get(path, "prefer: wait=20\r\n"))
            await passes(stand, 0.5)
            assert leaver.transport is not None
            leaver.transport.abort()
            await stand.until(lambda: len(early.answers) == 2)
            assert 2.0 <= stand.loop.time() - began <= 2.2
            assert (described(early.answers[0])["status"], early.answers[1].status) == ("running", 200)
            await stand.until(lambda: bool(late.answers))
            assert stand.loop.time() - began <= 5.1
            assert described(late.answers[0])["status"] == "done"
            assert described(await stand.ask(get(path, "prefer: wait=20\r\n")))["status"] == "done"
            path = await asked(stand)
            watcher = begin(stand, get(path, "prefer: wait=20\r\n"))
            await passes(stand, 0.5)
            await stand.ask(delete(path))
            assert described(watcher.answers[0])["status"] == "cancelled"
            await passes(stand, 0.5)
            assert not stand.gateway.watched_jobs

    run_virtually(main())


def test_a_queued_a_running_and_a_parked_job_can_be_cancelled_and_a_finished_one_deleted() -> None:
    async def main() -> None:
        engine = Engine([20.0, WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1), jobs=JobsConfig(max_offered=2)) as stand:
            paths = [await asked(stand) for _ in range(4)]
            assert jobs_of(stand)["parked"] == 2
            for path in (paths[3], paths[1], paths[0]):
                got = await stand.ask(delete(path))
                assert (got.status, described(got)["status"]) == (200, "cancelled")
            await stand.until(lambda: engine.left == 1, 0.1)
            assert (await stand.ask(get(f"{paths[0]}/result"))).error["code"] == "job_unfinished"
            assert (await ended(stand, paths[2]))["status"] == "done"
            got = await stand.ask(delete(paths[2]))
            assert described(got) == {"id": paths[2].removeprefix("/v1/jobs/"), "object": "job", "deleted": True}
            assert (await stand.ask(get(paths[2]))).error["code"] == "unknown_job"
            assert jobs_of(stand) == {"jobs": 3, "held_bytes": 0, "parked": 0, "offered": 0, "at_door": 0}

    run_virtually(main())


def test_a_result_expires_and_that_is_remembered_for_a_while() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), jobs=JobsConfig(max_age_s=10.0)) as stand:
            path = await asked(stand)
            assert (await ended(stand, path))["status"] == "done"
            await passes(stand, 12.0)
            got = await stand.ask(get(path))
            assert (got.status, got.error["code"]) == (410, "job_expired")
            assert jobs_of(stand)["jobs"] == 0
            await passes(stand, 12.0)
            assert (await stand.ask(get(path))).status == 404

    run_virtually(main())


def test_what_was_deleted_does_not_expire_once_more_and_only_so_many_ids_are_remembered() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE]), jobs=JobsConfig(max_age_s=10.0)) as stand:
            stand.gateway.jobs.most_expired = 1
            paths = [await asked(stand) for _ in range(3)]
            for path in paths:
                assert (await ended(stand, path))["status"] == "done"
            await stand.ask(delete(paths[1]))
            await passes(stand, 12.0)
            assert [(await stand.ask(get(path))).status for path in paths] == [404, 404, 410]

    run_virtually(main())


def test_another_tenant_sees_nothing_of_a_job() -> None:
    async def main() -> None:
        keys = tuple(ApiKey(sha256=sha256(name.encode()).hexdigest(), tenant=name) for name in ("a", "b"))
        of_a, of_b = "authorization: Bearer a\r\n", "authorization: Bearer b\r\n"
        with stand_for(Engine([WHOLE]), api_keys=keys, jobs=JobsConfig(max_age_s=1.0)) as stand:
            path = await asked(stand, ASYNC + of_a)
            await passes(stand, 0.1)
            for request in (get(path, of_b), get(f"{path}/result", of_b), delete(path, of_b)):
                assert (await stand.ask(request)).status == 404
            assert (await stand.ask(get(path))).status == 401
            assert len((await poll(stand, "/v1/jobs", of_a))["data"]) == 1
            assert (await poll(stand, "/v1/jobs", of_b))["data"] == []
            await passes(stand, 2.0)
            assert (await stand.ask(get(path, of_a))).status == 410
            assert (await stand.ask(get(path, of_b))).status == 404

    run_virtually(main())


def test_a_list_has_the_newest_first_and_an_end() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            paths = [await asked(stand) for _ in range(101)]
            found = await poll(stand, "/v1/jobs")
            assert [each["id"] for each in found["data"]] == [path.removeprefix("/v1/jobs/") for path in paths[:0:-1]]
            assert found["has_more"] is True
            for request in (post(chat(), "/v1/jobs"), delete("/v1/jobs"), delete(f"{paths[0]}/result")):
                assert (await stand.ask(request)).error["code"] == "method_not_allowed"

    run_virtually(main())


def test_where_there_is_no_room_a_job_is_refused_and_none_is_lost() -> None:
    async def main() -> None:
        config = JobsConfig(max_jobs=2, max_tenant_jobs=2)
        with stand_for(Engine([WHOLE]), jobs=config) as stand:
            paths = [await asked(stand) for _ in range(2)]
            got = await stand.ask(later())
            assert (got.status, got.error["code"], got.headers[b"retry-after"]) == (429, "jobs_full", b"10")
            assert "jobs.max_tenant_jobs" in got.error["message"]
            keyed = await stand.ask(later(ASYNC + "idempotency-key: k\r\n"))
            assert (keyed.status, keyed.error["code"]) == (429, "jobs_full")
            for path in paths:
                assert (await ended(stand, path))["status"] == "done"
            await stand.ask(delete(paths[0]))
            assert (await stand.ask(later(ASYNC + "idempotency-key: k\r\n"))).status == 202

    run_virtually(main())


def test_a_result_that_is_too_long_is_a_failure_and_ends_its_engines_work() -> None:
    async def main() -> None:
        engine = Engine([STREAM_HEAD, chunk(event("a" * 2000)), 50.0, chunk(DONE) + STREAM_END])
        with stand_for(engine, jobs=JobsConfig(max_result_bytes=1000)) as stand:
            path = await asked(stand, stream=True)
            found = await ended(stand, path, 1.0)
            assert (found["status"], found["error"]["code"]) == ("failed", "result_too_large")
            assert engine.left == 1
            assert (await stand.ask(get(f"{path}/result"))).status == 507

    run_virtually(main())


def test_a_repeat_under_a_key_gets_the_same_job_also_while_its_client_waits() -> None:
    async def main() -> None:
        engine = Engine([5.0, WHOLE])
        with stand_for(engine) as stand:
            request = later("idempotency-key: k\r\nprefer: respond-async\r\n")
            first, again = await stand.ask(request), await stand.ask(request)
            assert first.body == again.body
            assert again.headers[b"idempotency-replayed"] == b"true"
            waiting = later("idempotency-key: w\r\nprefer: respond-async, wait=2\r\n", max_tokens=3)
            clients = [begin(stand, waiting), begin(stand, waiting)]
            await stand.until(lambda: all(bool(client.answers) for client in clients))
            assert [client.answers[0].status for client in clients] == [202, 202]
            assert clients[0].answers[0].body == clients[1].answers[0].body
            assert len(engine.requests) == 2

    run_virtually(main())


def test_while_draining_running_jobs_finish_and_the_others_have_failed() -> None:
    async def main() -> None:
        engine = Engine([5.0, WHOLE])
        with stand_for(engine, capacity=Capacity(sequences=1), jobs=JobsConfig(max_offered=2)) as stand:
            paths = [await asked(stand) for _ in range(3)]
            at_door = begin(stand, later("prefer: respond-async, wait=60\r\n"))
            asking = begin(stand, get("/v1/models"))
            await passes(stand, 0.5)
            stand.gateway.drain()
            del asking
            await stand.until(lambda: bool(at_door.answers))
            assert (at_door.answers[0].status, at_door.answers[0].error["code"]) == (503, "shutting_down")
            await stand.gateway.emptied()
            found = [await poll(stand, path) for path in paths]
            assert [each["status"] for each in found] == ["done", "failed", "failed"]
            assert {each["error"]["code"] for each in found[1:]} == {"shutting_down"}

    run_virtually(main())


def test_a_callback_goes_to_allowed_origins_only_and_tells_of_the_end() -> None:
    async def main() -> None:
        callbacks = Callbacks(origins=("https://hooks.example:8443",))
        with stand_for(Engine([WHOLE]), callbacks=callbacks) as stand:
            for url in (
                "https://hooks.example/",
                "http://hooks.example:8443/",
                "https://hooks.example:8443@evil.example/",
                "https://evil.example/?https://hooks.example:8443/",
                "https://a@hooks.example:8443/",
                "nonsense",
            ):
                got = await stand.ask(later(ASYNC + f"x-tidegate-callback: {url}\r\n"))
                assert (got.status, got.error["code"]) == (400, "invalid_header"), url
            path = await asked(stand, ASYNC + "x-tidegate-callback: https://hooks.example:8443/done?x=1\r\n")
            await ended(stand, path)
            [(url, message_id, body)] = stand.called_back
            assert (url, message_id) == ("https://hooks.example:8443/done?x=1", path.removeprefix("/v1/jobs/"))
            found = json.loads(body)
            assert (found["type"], found["data"]["status"]) == ("job.done", "done")
            assert "response" not in found["data"]

    run_virtually(main())


def test_switched_off_the_preference_is_passed_over_and_the_path_passes_through() -> None:
    async def main() -> None:
        engine = Engine([WHOLE])
        with stand_for(engine, jobs=JobsConfig(enabled=False)) as stand:
            assert (await stand.ask(later())).status == 200
            assert (await stand.ask(get("/v1/jobs/x"))).status == 200
            assert engine.requests[1].target == b"/v1/jobs/x"

    run_virtually(main())


def test_a_client_may_ask_for_less_than_class_long() -> None:
    async def main() -> None:
        with stand_for(Engine([WHOLE])) as stand:
            for named, taken in (("batch", "batch"), ("sheddable", "batch"), ("interactive", "long")):
                path = await asked(stand, f"x-tidegate-async: 1\r\nx-tidegate-class: {named}\r\n")
                await ended(stand, path)
                assert stand.rows[-1].service_class == taken

    run_virtually(main())
