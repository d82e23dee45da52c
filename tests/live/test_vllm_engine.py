"""``tidegate serve`` with a vLLM of its own: started, slotted, killed, restarted, stopped. The real CPU build.

One service for all tests but the last two; each start takes half a minute and more.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest

from bench.vllm_runs import place
from tests.live import running
from tests.live.running import Answer, Exchange, Service, call, until
from tests.live.vllm_serving import post, session_of_pid, story, title_of

pytestmark = [pytest.mark.live, pytest.mark.skipif(not place.is_there(), reason=place.MISSING)]

KEEPER = "tidegate.engines.vllm.keeper"
STARTED_WITHIN_S = 480.0
"""Half a minute on a quiet machine; 280 s were seen on one that did four other things."""
BLOCKS, BLOCK_TOKENS, CONTEXT_TOKENS = 80, 32, 1024
SLOTS = BLOCKS * BLOCK_TOKENS // 256
MOST_QUEUED = 12


def config(folder: Path, **changes: object) -> Path:
    engine = {
        "kind": "vllm",
        "model": str(place.model()),
        "python": str(place.python()),
        "device": "cpu",
        "context_tokens": CONTEXT_TOKENS,
        "sequences": SLOTS,
        "kv_blocks": BLOCKS,
        "block_tokens": BLOCK_TOKENS,
        "batch_tokens": 512,
        "queued_requests": MOST_QUEUED,
        "can_sleep": False,
        "drain_s": 20,
        "extra": ["--enforce-eager"],
        **changes,
    }
    file = folder / "tidegate.yaml"
    file.write_text(json.dumps({"upstreams": {"m": {"engine": engine}}}))
    return file


@contextmanager
def serving(folder: Path, **changes: object) -> Iterator[Service]:
    arguments = ("--config", str(config(folder, **changes)))
    with running.service(folder / "serve.log", *arguments, within_s=STARTED_WITHIN_S) as started:
        yield started


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("own")) as started:
        yield started


@pytest.fixture(autouse=True)
def _leaves_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "own" in request.fixturenames:
        service: Service = request.getfixturevalue("own")
        until(service.is_idle, 60, every_s=0.2)
        view = service.view()
        assert (view["permit_leaks"], view["abort_unconfirmed"]) == (0, 0)


def engine_pids(service: Service) -> dict[str, int]:
    """The processes of its vLLM by title."""
    (keeper,) = service.children(KEEPER)
    return {title_of(pid).split(" ")[0]: pid for pid in session_of_pid(keeper)}


def test_at_ready_every_slot_is_free_and_the_log_says_so(own: Service) -> None:
    until(lambda: f"Server ready. Free slots: {SLOTS}/{SLOTS}" in own.log.read_text(), 10)
    until(lambda: "Weights loaded." in own.log.read_text(), 10)
    log = own.log.read_text()
    assert f"Slot allocation completed. Free slots: {SLOTS}/{SLOTS}" in log
    assert re.search(r"Weights loaded\. Memory usage: [1-9]\.\dGB", log)
    replica = own.replica()
    assert (replica["slots"]["total"], replica["sequences"]) == (SLOTS, SLOTS)


def test_the_stock_sdk_gets_whole_answers_and_streams(own: Service) -> None:
    with openai.OpenAI(base_url=f"{own.url}/v1", api_key="none", max_retries=0, timeout=120) as client:
        whole = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Count to five."}], max_tokens=12
        )
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Count to five."}], max_tokens=12, stream=True
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert whole.usage is not None
    assert whole.usage.completion_tokens <= 12
    assert whole.choices[0].message.content
    assert text


def test_a_prompt_over_the_context_is_refused_before_it_is_sent(own: Service) -> None:
    refused = post(own.url, {"model": "m", "messages": [{"role": "user", "content": "7 " * 1500}]})
    assert refused.status == 400
    assert refused.json["error"]["code"] == "context_length_exceeded"


def test_every_class_is_served_and_its_priority_is_accepted(own: Service) -> None:
    for tier in ("flex", "priority", "default"):
        assert post(own.url, story(1, 4, service_tier=tier, priority=-9)).status == 200


def test_readings_of_the_engine_stand_in_our_metrics(own: Service) -> None:
    same = {"model": "m", "messages": [{"role": "user", "content": "word " * 300}], "max_tokens": 2}
    assert {post(own.url, same).status for _ in range(2)} == {200}
    until(lambda: figure(own, "tidegate_engine_prefix_cache_hit_tokens_total") > 0, 10, every_s=0.3)
    assert figure(own, "tidegate_engine_prefix_cache_query_tokens_total") > 0
    assert figure(own, "tidegate_engine_preemptions_total") == 0


def figure(service: Service, name: str) -> float:
    page = call(service.admin, "/metrics").body.decode()
    return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(f"{name}{{"))


def test_its_own_full_queue_is_pushback_with_a_time_to_come_back(own: Service) -> None:
    for _ in range(5):
        refused = refused_beside_others(own)
        assert refused.status in (429, 503)
        assert int(refused.headers["retry-after"]) >= 1
        until(own.is_idle, 60, every_s=0.3)
        if figure(own, "tidegate_engine_turned_away_total"):
            break
    assert figure(own, "tidegate_engine_turned_away_total") >= 1
    until(lambda: post(own.url, story(2, 4)).status == 200, 30, every_s=0.5)
    assert own.replica()["breaker"] == "closed"


def refused_beside_others(service: Service) -> Answer:
    """Another client fills the engine, mostly before our next two readings can show that; then we ask."""
    url, direct = engine_url(service), key(service)
    others = [Exchange(url, story(index, 120, stream=True), direct) for index in range(MOST_QUEUED)]
    until(lambda: held_by(url) >= MOST_QUEUED, 10, every_s=0.02)
    refused = post(service.url, story(99, 4), x_tidegate_deadline_ms="2000")
    for other in others:
        other.read_all()
    return refused


def held_by(url: str) -> float:
    """Requests that run or wait there, by its own count."""
    names = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
    page = call(url, "/metrics").body.decode()
    return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(names))


def test_an_engine_killed_in_mid_stream_is_a_typed_error_and_the_next_request_is_served(own: Service) -> None:
    before = engine_pids(own)
    stream = Exchange(own.url, story(1, 600, stream=True))
    stream.read_events(3)
    os.kill(before["VLLM::EngineCore"], signal.SIGKILL)
    seen = stream.read_all()
    assert b'"error"' in seen
    assert b"[DONE]" not in seen
    until(lambda: not running.is_ready(own), 20)
    until(lambda: running.is_ready(own), STARTED_WITHIN_S, every_s=0.5)
    until(lambda: post(own.url, story(2, 4)).status == 200, 30, every_s=0.5)
    after = engine_pids(own)
    assert not set(before.values()) & set(after.values())
    assert [pid for pid in before.values() if Path(f"/proc/{pid}").exists()] == []
    assert "the engine: vLLM" in own.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_service_no_process_of_vllm_is_left(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as started:
        pids = [started.process.pid, *engine_pids(started).values()]
        stream = Exchange(started.url, story(1, 40, stream=True))
        stream.read_events(2)
        started.process.send_signal(number)
        stream.read_all()
        status = started.process.wait(60)
        assert status == (-number if number is signal.SIGKILL else 0)
        assert (b"[DONE]" in stream.seen) is (number is not signal.SIGKILL)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 20)


def engine_url(service: Service) -> str:
    """Where its vLLM listens, which only this machine reaches."""
    # A reading may have found it ready before it was said in the log.
    until(lambda: " serves at http" in service.log.read_text(), 10)
    found = re.findall(r"serves at (http://127\.0\.0\.1:\d+)", service.log.read_text())
    return str(found[-1])


def key(service: Service) -> dict[str, str]:
    """The engine's key, out of its environment."""
    (keeper,) = service.children(KEEPER)
    (server,) = [pid for pid in session_of_pid(keeper) if "api_server" in title_of(pid)]
    held = dict(each.partition("=")[::2] for each in Path(f"/proc/{server}/environ").read_text().split("\0"))
    return {"authorization": f"Bearer {held['VLLM_API_KEY']}"}
